import subprocess
import sys

from ackscope.address import parse_amqp
from lab.faults import FAULTS
from lab.faults.__main__ import announcement
from lab.ports import free_ports


def test_every_fault_is_named_for_the_rule_that_finds_it():
    """And keeps to queues of its own."""
    for name, spec in FAULTS.items():
        assert name == spec.name == spec.rule
        assert f"fault.{name}" == spec.subject.name
        assert not spec.summary.endswith(".")


def test_a_fault_announces_what_diagnosis_should_say():
    """The virtual host is the one it was put into."""
    said = announcement(FAULTS["requeue-loop"], parse_amqp("amqp://127.0.0.1/shop"))

    assert {
        "fault": "requeue-loop",
        "rule": "requeue-loop",
        "subject": {"kind": "queue", "vhost": "shop", "name": "fault.requeue-loop"},
    } == said


def test_a_broker_that_is_not_there_is_one_line():
    """Host and port, no credentials, no traceback."""
    port = free_ports(1)[0]
    words = ["--amqp", f"amqp://guest:secret@127.0.0.1:{port}", "--management", "http://127.0.0.1:1"]

    done = subprocess.run(
        [sys.executable, "-m", "lab.faults", "stuck-consumer", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 3 == done.returncode
    assert "" == done.stdout
    assert [
        f"lab.faults: amqp://guest@127.0.0.1:{port}: no AMQP connection (AMQPConnectionError); check that it listens"
    ] == (done.stderr.splitlines())
