"""`ackscope probe confirm --strategy` against real brokers."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

ALL = ("--strategy", "individual", "--strategy", "batch", "--strategy", "async")


def probe(lab, *words):
    """Run the command; the finished process."""
    command = [sys.executable, "-m", "ackscope", "probe", "confirm", "--amqp", lab.nodes[0].amqp, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_waiting_for_each_confirm_is_slowest(lab):
    """Every message acked, one at a time behind one that never waits, and nothing left on the broker."""
    done = probe(lab, *ALL, "--for", "6s", "--batch", "50", "--json")
    document = json.loads(done.stdout)
    reached = {(item["stream"], item["strategy"]): item for item in document["strategies"]}

    assert (0, "") == (done.returncode, done.stderr)
    assert {(stream, name) for stream in ("classic", "quorum") for name in ("individual", "batch", "async")} == set(
        reached
    )
    for item in reached.values():
        assert 0 < item["messages"] == item["outcomes"]["acked"] <= 10_000
    for stream in ("classic", "quorum"):
        assert reached[stream, "individual"]["throughput"] < reached[stream, "async"]["throughput"]
        assert document["ratios"][stream].startswith("individual : batch : async = 1 : ")
    assert ".once." not in lab.ctl(0, "list_queues", "name", "--silent")


def test_paths_without_a_queue_and_streams_can_be_compared(lab_43):
    """What is compared is a path like any other."""
    words = ("--strategy", "batch", "--stream", "stream", "--stream", "unroutable", "--stream", "classic-large")
    done = probe(lab_43, *words, "--for", "1s")

    assert (0, "") == (done.returncode, done.stderr)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert ".once." not in lab_43.ctl(0, "list_queues", "name", "--silent")


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--strategy", "batch", "--batch", "0"), "--batch: must be from 1 to 10000"),
        (("--strategy", "batch", "--payload", "1"), "--payload: "),
    ],
)
def test_wrong_usage_is_one_line(lab_43, words, reported):
    """With the exit code of the contract."""
    done = probe(lab_43, *words)

    assert (3, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert reported in done.stderr
