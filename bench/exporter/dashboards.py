"""`python -m bench.exporter.dashboards`: whether the exporter has the metrics of known dashboards.

A real Prometheus scrapes the exporter. `dashboard_metrics.json` lists the metrics and labels that the panels of each
dashboard query. Official dashboards join every metric with `rabbitmq_identity_info`; the join is tested too.
"""

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pika
import requests
import yaml

from ackscope.errors import MissingPart
from bench.bench import Bench, Document, progress
from bench.exporting import Exporter, exporting, wait_for
from bench.tables import percent, table, wrap
from lab.amqp import connect, parse_lab_address
from lab.cluster import start_lab
from lab.demo.prometheus import answers
from lab.node import LabNode
from lab.ports import free_ports
from lab.workload.__main__ import run_jobs

ASKED: Mapping[str, Mapping[str, list[str]]] = orjson.loads(
    Path(__file__).with_name("dashboard_metrics.json").read_bytes()
)
_JOINED = ("RabbitMQ-Overview", "operator: RabbitMQ queues")
"""Dashboards whose panels join with rabbitmq_identity_info."""

_NAMESPACE = "lab"
"""The label that Kubernetes service discovery adds to every target."""

_NO_SIZES = "the management API knows how many messages were published, and not how large each one was"
_NO_DISK = (
    "the list of queues does not tell it; rabbitmq_exporter wrote a constant 0, "
    "ackscope_cluster_disk_reads_total and _writes_total tell it of all queues together"
)
WHY_MISSING: Mapping[str, str] = {
    "rabbitmq_global_messages_received_confirm_total": "the overview counts all publishes together; channels tell "
    "whether they confirm, and their counts go with them when they close",
    "rabbitmq_message_size_bytes_bucket": _NO_SIZES,
    "rabbitmq_message_size_bytes_count": _NO_SIZES,
    "rabbitmq_message_size_bytes_sum": _NO_SIZES,
    "rabbitmq_queue_disk_reads_total": _NO_DISK,
    "rabbitmq_queue_disk_writes_total": _NO_DISK,
}
"""Metric of a dashboard -> why the management API cannot provide it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version of the lab (default 4.3)")
    parser.add_argument(
        "--seconds", type=float, default=60, metavar="N", help="wait so long for all to answer (default 60)"
    )


def measure(args: argparse.Namespace) -> Document:
    """Query every metric of every dashboard."""
    settings = {"poll": {"interval": 2}, "metrics": {"names": "both", "detailed": True}}
    with start_lab(args.broker) as lab, _workload(lab.nodes[0]):
        progress(f"RabbitMQ {lab.broker} works; the exporter and Prometheus start")
        with exporting(lab.nodes[0], probes=False, root=settings) as exporter, _prometheus(exporter) as base:
            asked = _Asked(base)

            def all_answer() -> bool:
                return all(
                    asked.answers(name, metric, labels) or metric in WHY_MISSING
                    for name, metrics in ASKED.items()
                    for metric, labels in metrics.items()
                )

            with contextlib.suppress(Exception):
                wait_for(all_answer, "every metric", args.seconds)
            dashboards = {
                name: {metric: asked.answers(name, metric, labels) for metric, labels in metrics.items()}
                for name, metrics in ASKED.items()
            }
        return {"broker": lab.broker, "dashboards": dashboards, "why": dict(WHY_MISSING)}


class _Asked:
    """Sends the queries of dashboards to a Prometheus.

    Args:
        base: its URL.
    """

    def __init__(self, base: str) -> None:
        self._base = base

    def answers(self, dashboard: str, metric: str, labels: list[str]) -> bool:
        """Return whether the metric has samples with all labels not empty, and the dashboard's join works."""
        with_labels = ",".join(f'{label}!=""' for label in labels)
        if not self._some(f"{metric}{{{with_labels}}}"):
            return False
        if dashboard not in _JOINED or metric == "rabbitmq_identity_info":
            return True
        identity = f'rabbitmq_identity_info{{namespace="{_NAMESPACE}",rabbitmq_endpoint="aggregated"}}'
        value = f"rate({metric}[60s])" if metric.endswith("_total") else metric
        return self._some(
            f"sum by (rabbitmq_cluster) ({value} * on(instance, job) group_left(rabbitmq_cluster) {identity})"
        )

    def _some(self, expression: str) -> bool:
        answer = requests.get(f"{self._base}/api/v1/query", params={"query": expression}, timeout=10).json()
        return answer["status"] == "success" and bool(answer["data"]["result"])


@contextlib.contextmanager
def _prometheus(exporter: Exporter) -> Iterator[str]:
    """Run a Prometheus that scrapes the exporter every 2 s, and yield its URL."""
    binary = shutil.which("prometheus")
    if binary is None:
        raise MissingPart("prometheus is missing: run make setup, or apt-get install prometheus")
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    target = {"targets": [exporter.url.removeprefix("http://")], "labels": {"namespace": _NAMESPACE}}
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        config = Path(folder) / "prometheus.yml"
        config.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "2s"},
                    "scrape_configs": [{"job_name": "ackscope", "static_configs": [target]}],
                }
            )
        )
        words = [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={listen}",
        ]
        with (Path(folder) / "log").open("wb") as sink:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            wait_for(lambda: answers(f"http://{listen}/-/ready"), "an answer of Prometheus")
            yield f"http://{listen}"
        finally:
            process.terminate()
            process.wait(20)


@contextlib.contextmanager
def _workload(node: LabNode) -> Iterator[None]:
    """Run the sample workload and, every second, gets, returns, drops, redeliveries and churn, which it lacks."""
    ending, address = threading.Event(), parse_lab_address(node.amqp)
    shop = threading.Thread(target=run_jobs, args=(address, ending), daemon=True)
    more = threading.Thread(target=_more, args=(address, ending), daemon=True)
    shop.start()
    more.start()
    try:
        yield
    finally:
        ending.set()
        shop.join(10)
        more.join(10)


def _more(address: Any, ending: threading.Event) -> None:
    while not ending.wait(1.0):
        with connect(address, "dashboards") as connection:
            channel = connection.channel()
            channel.queue_declare("dashboards")
            channel.queue_purge("dashboards")
            channel.basic_publish("", "nobody.has.this", b"dropped")
            channel.basic_get("dashboards", auto_ack=True)
            for _ in range(6):
                channel.basic_publish("", "dashboards", b"fetched")
            channel.basic_get("dashboards", auto_ack=True)
            fetched = channel.basic_get("dashboards")[0]
            if fetched is not None:
                channel.basic_nack(fetched.delivery_tag, requeue=True)
            again = channel.basic_get("dashboards")[0]
            if again is not None:
                channel.basic_ack(again.delivery_tag)
            tag = channel.basic_consume("dashboards", lambda *_: None, auto_ack=True)
            connection.process_data_events(0.2)
            channel.basic_cancel(tag)
            channel.queue_delete("dashboards")
            channel.confirm_delivery()
            with contextlib.suppress(pika.exceptions.UnroutableError):
                channel.basic_publish("", "nobody.has.this", b"returned", mandatory=True)


def lines(document: Document) -> list[str]:
    """Return a row per dashboard, then the missing metrics and why."""
    rows, missing = [], []
    for name, metrics in document["dashboards"].items():
        there = sum(metrics.values())
        can = sum(metric not in document["why"] for metric in metrics)
        rows.append((name, str(len(metrics)), str(there), percent(there / len(metrics)), str(can)))
        missing += [(name, metric) for metric, answered in metrics.items() if not answered]
    out = [
        f"RabbitMQ {document['broker']}; a metric answers when it has the labels, and joins where the dashboard joins",
        "",
        *table(("dashboard", "asks", "answers", "share", "API can give"), rows),
    ]
    for name, metric in missing:
        why = document["why"].get(metric, "it should: a defect here")
        out += ["", *wrap(f"{name} lacks {metric}: {why}", "  ")]
    defects = [metric for _, metric in missing if metric not in document["why"]]
    return [
        *out,
        "",
        "met: all that the management API can give" if not defects else f"NOT met: {len(defects)} are missing",
    ]


BENCH = Bench(
    name="dashboards",
    room="exporter",
    shows="the share of what known dashboards ask for that answers, against a real Prometheus",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
