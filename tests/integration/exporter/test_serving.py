import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import orjson
import psutil
import pyarrow.dataset as ds
import pytest

from exporter.docs.metrics import sections
from tests.integration.exporter.running import Management, eventually, exporting
from tests.unit.exporter.made import promtool

pytestmark = pytest.mark.integration

ACKED = 'ackscope_confirms_total{cluster="shop",probe="confirm",stream="classic",queue_type="classic",outcome="acked"}'
ORDERS, JOBS = "exporter-test.orders", "exporter-test.jobs"


@pytest.fixture
def node(lab):
    """A node with a classic and a quorum queue of three messages each; they go with the test."""
    node, management = lab.nodes[0], Management(lab.nodes[0])
    for name, queue_type in ((ORDERS, "classic"), (JOBS, "quorum")):
        management.declare(name, queue_type)
        management.publish(name, 3)
    yield node
    management.sweep("exporter-test.", "ackscope.probe.")


def test_a_real_broker_is_served_whole(lab, node, tmp_path):
    """Queues, probes, findings, landing files: each seen from outside, on one broker."""
    with exporting(node, tmp_path) as exporter:
        eventually(lambda: exporter.get("/-/ready").status_code == 200)
        for queue in (ORDERS, JOBS):
            sample = f'rabbitmq_queue_messages_ready{{cluster="shop",vhost="/",queue="{queue}"}}'
            assert eventually(lambda sample=sample: exporter.value(sample)) == 3
        for queue_type in ("classic", "quorum"):
            labels = f'cluster="shop",probe="confirm",stream="{queue_type}",queue_type="{queue_type}"'
            sample = f'ackscope_confirms_total{{{labels},outcome="acked"}}'
            assert eventually(lambda sample=sample: exporter.value(sample) or 0) > 0
        nodes = eventually(
            lambda: {outcome["node"] for outcome in exporter.cluster("probes")["probes"] if outcome["node"]}
        )
        text, findings = exporter.get("/metrics").text, exporter.cluster("findings")
        for table in ("probe_messages", "ack_bursts", "probe_steps", "queue_samples"):
            eventually(lambda table=table: list(exporter.landing.glob(f"{table}/cluster=shop/date=*/*.parquet")))
        code, seconds = exporter.stop()
    rows = ds.dataset(exporter.landing / "queue_samples", partitioning="hive").to_table().to_pylist()
    documented = {spec.name for section in sections().values() for spec in section}
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    assert "" == promtool(text)
    assert shown <= documented
    assert 'ackscope_collector_success{collector="' in text
    assert not [line for line in text.splitlines() if line.startswith("ackscope_collector_success") and line[-1] != "1"]
    assert (lab.broker, []) == (findings["broker"], [gap for gap in findings["findings"] if not gap["rule"]])
    assert "stuck-consumer" in findings["checked"]
    assert nodes == {node.name}
    assert {ORDERS, JOBS} == {row["queue"] for row in rows}
    assert (0, True) == (code, seconds < 5)


def test_a_probe_is_run_when_it_is_requested(lab_310, tmp_path):
    """Metrics for a scraper, a report for a person; one at a time, while `/metrics` goes on; nothing is left behind."""
    node = lab_310.nodes[0]
    password = urlsplit(node.amqp).password
    with exporting(node, tmp_path) as exporter:
        with ThreadPoolExecutor(1) as beside:
            requested = beside.submit(exporter.get, "/probe?probe=confirm&target=shop", 60)
            # The supervised probes are one child; the one-shot run is the other.
            running = eventually(lambda: len(found := exporter.children()) > 1 and found)
            words = " ".join(word for child in running for word in child.cmdline())
            second = exporter.get("/probe?probe=rtt&target=shop", 60)
            metrics = exporter.get("/metrics")
            first = requested.result(60)
        report = exporter.get("/probe?probe=confirm&target=shop&debug=true", 60)
        nowhere = exporter.get("/probe?probe=rtt&target=amqp://elsewhere")
        exporter.stop()
    left = [name for name in Management(node).queues() if name.startswith("ackscope.probe.once.")]
    Management(node).sweep("ackscope.probe.")

    assert (200, 429, 200, 400) == (first.status_code, second.status_code, metrics.status_code, nowhere.status_code)
    assert "" == promtool(first.text)
    assert "\nprobe_success 1\n" in first.text
    assert re.search(r'probe_confirm_seconds\{stream="classic",queue_type="classic",stat="p99"\} [0-9]', first.text)
    assert "# report\nconfirm probe of RabbitMQ 3.10" in report.text
    assert "# run\nexit code 0, " in report.text
    assert f":{password}@" not in words + report.text
    assert [] == [name for name in left if not name.endswith(".stream")]


def test_a_probe_process_that_is_killed_comes_back(lab_310, tmp_path):
    """The loss is counted and reported; polling goes on meanwhile; confirms flow again."""
    node = lab_310.nodes[0]
    polls = 'ackscope_poll_attempts_total{cluster="shop",family="overview"}'
    with exporting(node, tmp_path) as exporter:
        eventually(lambda: (exporter.value(ACKED) or 0) > 5)
        before = exporter.value(polls)
        (child,) = exporter.children()
        os.kill(child.pid, signal.SIGKILL)
        eventually(lambda: exporter.value("ackscope_probe_process_restarts_total") == 1)
        eventually(lambda: exporter.value("ackscope_probe_process_up") == 1)
        seen = exporter.value(ACKED)
        eventually(lambda: exporter.value(ACKED) > seen + 5)
        eventually(lambda: exporter.value(polls) > before)
        (second,) = exporter.children()
        code, _ = exporter.stop()
    Management(node).sweep("ackscope.probe.")

    assert child.pid != second.pid
    assert not psutil.pid_exists(second.pid)
    assert 0 == code
    assert "the probe process exited" in exporter.log.read_text()


def test_an_exporter_that_is_killed_leaves_no_probe_process(lab_310, tmp_path):
    """Its end of input is the child's end."""
    node = lab_310.nodes[0]
    with exporting(node, tmp_path) as exporter:
        (child,) = eventually(exporter.children)
        exporter.process.kill()
        exporter.process.wait(10)
        eventually(lambda: not psutil.pid_exists(child.pid), 15)
    Management(node).sweep("ackscope.probe.")


def test_diagnose_finds_nothing_on_a_healthy_broker(lab_310):
    """Both looks and the probe within the time; exit code 0."""
    node = lab_310.nodes[0]
    words = ["diagnose", "--management", node.management, "--amqp", node.amqp, "--json"]
    done = subprocess.run([sys.executable, "-m", "ackscope", *words], capture_output=True, check=False, timeout=60)
    Management(node).sweep("ackscope.probe.")
    (cluster,) = orjson.loads(done.stdout)["clusters"]
    pressing = [finding for finding in cluster["findings"] if finding["severity"] != "info"]
    open_gaps = [gap for gap in cluster["cannot_tell"] if not gap["permanent"]]

    assert (0, [], []) == (done.returncode, pressing, open_gaps)
    assert lab_310.broker == cluster["broker"]


_LONGER_THAN_A_JOB = 32.0
"""Seconds without an acknowledgement after which one look calls a consumer stuck that acknowledged before."""


def test_diagnose_names_a_stuck_consumer(lab_310):
    """The fault is held while we look: rule and queue are named, with its command to copy; exit code 2."""
    node = lab_310.nodes[0]
    where = ["--amqp", node.amqp, "--management", node.management]
    fault = subprocess.Popen(
        [sys.executable, "-m", "lab.faults", "stuck-consumer", *where], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        held = orjson.loads(fault.stdout.readline())
        eventually(Management(node).shows_held)
        # It acknowledged before, so a shorter time may be a long job.
        time.sleep(_LONGER_THAN_A_JOB)
        words = ["diagnose", "--management", node.management]
        done = subprocess.run(
            [sys.executable, "-m", "ackscope", *words], capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        fault.terminate()
        fault.wait(30)
        fault.stdout.close()

    assert 2 == done.returncode
    assert f"CRITICAL  queue '{held['subject']['name']}' in vhost '/'  (stuck-consumer" in done.stdout
    assert "           rabbitmqctl list_consumers -p /" in done.stdout
