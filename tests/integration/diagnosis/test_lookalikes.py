"""Nine faults that look alike on a dashboard, at once on one broker: each is named for what it is.

They share one broker and one exporter with its real polls and the probe of round trips; the alarm comes last, for it
blocks the publishers of all the others.
"""

import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.integration.exporter.running import exporting

pytestmark = pytest.mark.integration

EIGHT = (
    "stuck-consumer",
    "slow-consumer",
    "prefetch-too-small",
    "prefetch-hoarder",
    "no-consumer",
    "consumer-tcp-backpressure",
    "pub-tx-channel",
    "requeue-loop",
)
NINTH = "mixed-connection"
WITHIN = 100.0


@contextmanager
def injected(lab, names):
    """Hold faults for as long as the block runs; all of them are in effect."""
    node = lab.nodes[0]
    where = ["--amqp", node.amqp, "--management", node.management, "--lab", str(lab.folder)]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "lab.faults", name, *where],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in names
        ]
        try:
            for process in running:
                assert process.stdout.readline().startswith("{")
            yield
        finally:
            for process in running:
                process.stdin.close()
            for process in running:
                process.wait(60)


def about(finding):
    """The faults whose queue or client a finding speaks of."""
    subject = finding["subject"]
    if subject["kind"] == "queue":
        return {subject["name"].removeprefix("fault.")} & {*EIGHT, NINTH}
    evidence = "".join(each["what"] + each["value"] for each in finding.get("evidence", ()))
    return {name for name in (*EIGHT, NINTH) if f"fault-{name}" in finding["summary"] + evidence}


def watch(exporter, names):
    """Look every second until each fault was called by its name; that, and what was called by another."""
    called, wrong = {}, set()
    until = time.monotonic() + WITHIN
    while not set(names) <= called.keys() and time.monotonic() < until:
        for finding in exporter.cluster("findings")["findings"]:
            for each in (finding, *finding["consequences"]):
                if each["rule"] in about(each):
                    called.setdefault(each["rule"], each)
            if finding["severity"] != "info" and finding["rule"] not in about(finding):
                wrong |= {(fault, finding["rule"]) for fault in about(finding)}
        time.sleep(1)
    return called, wrong


def test_nine_look_alikes_at_once_are_distinguished(lab_43, tmp_path):
    """Each by its own rule, on its own queue, with its client in the words of the finding; no warning names another."""
    # The alarm blocks whoever publishes, also the faults: it ends before they do.
    with (
        injected(lab_43, EIGHT),
        exporting(lab_43.nodes[0], tmp_path, interval="5s", probes={"enabled": ["rtt"]}) as exporter,
    ):
        called, wrong = watch(exporter, EIGHT)
        with injected(lab_43, [NINTH]):
            during, _ = watch(exporter, [NINTH])

    assert set(EIGHT) == called.keys()
    assert set() == wrong
    assert {NINTH} <= during.keys()
    for name in {*EIGHT} - {"no-consumer"}:
        assert f"fault-{name}" in str(called[name])
