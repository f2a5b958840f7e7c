"""Alert rules that others publish, evaluated by a real Prometheus that scrapes the official plugin.

An alert counts as soon as its condition holds, without its waiting time (`for`), which favours the others. The
waiting time is reported. An alert without a queue label counts for every fault in effect at that moment.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from ackscope.errors import MissingPart
from bench.exporting import end_process, wait_for
from lab.demo.prometheus import answers
from lab.node import LabNode
from lab.ports import free_ports

RULES = Path(__file__).with_name("peer_rules.yml")
_FAMILIES = ("queue_coarse_metrics", "queue_consumer_count")
_PATHS = {"plugin": "/metrics", "objects": "/metrics/per-object", "detailed": "/metrics/detailed"}


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert whose condition holds.

    Attributes:
        peer: publisher of the rule.
        queue: "" if the alert names none.
        causes: our rules for the cause that its name states.
        waits: waiting time of the rule (`for`), seconds.
    """

    peer: str
    name: str
    queue: str
    causes: frozenset[str]
    waits: float


@dataclass(frozen=True, slots=True)
class Peers:
    """A Prometheus with the rules of others."""

    url: str

    def holding(self) -> set[Alert]:
        """Return all alerts whose condition holds now."""
        answer = requests.get(f"{self.url}/api/v1/rules?type=alert", timeout=10)
        groups: Sequence[Mapping[str, Any]] = answer.json()["data"]["groups"] if answer.ok else []
        return {
            Alert(
                peer=group["name"],
                name=rule["name"],
                queue=alert["labels"].get("queue", ""),
                causes=frozenset(rule["labels"]["causes"].split()),
                waits=rule["duration"],
            )
            for group in groups
            for rule in group["rules"]
            for alert in rule["alerts"]
        }


@contextmanager
def peers(nodes: Sequence[LabNode]) -> Iterator[Peers]:
    """Run a Prometheus that scrapes the plugin of every node and evaluates the rules every 5 s.

    Raises:
        MissingPart: the prometheus command is missing.
    """
    binary = shutil.which("prometheus")
    if binary is None:
        raise MissingPart("prometheus is missing: run make setup, or apt-get install prometheus")
    targets = [node.prometheus.removeprefix("http://") for node in nodes]
    jobs = [
        {
            "job_name": job,
            "metrics_path": path,
            "static_configs": [{"targets": targets}],
            **({"params": {"family": list(_FAMILIES)}} if job == "detailed" else {}),
        }
        for job, path in _PATHS.items()
    ]
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-peers-") as folder:
        config = Path(folder) / "prometheus.yml"
        every = {"scrape_interval": "5s", "evaluation_interval": "5s"}
        config.write_text(yaml.safe_dump({"global": every, "rule_files": [str(RULES)], "scrape_configs": jobs}))
        words = [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={listen}",
        ]
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: answers(f"http://{listen}/-/ready"), "Prometheus")
            yield Peers(f"http://{listen}")
        finally:
            end_process(process)
