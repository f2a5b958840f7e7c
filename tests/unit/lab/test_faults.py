import subprocess
import sys
from unittest.mock import Mock

import pytest

from ackscope.address import parse_amqp
from ackscope.errors import MissingPart
from diagnosis.rules import RULES
from lab.brokers import SUITES
from lab.decoys import DECOYS
from lab.faults import FAULTS, clients, cluster, consumers, nodes, probing, publishers, queues, topology
from lab.faults.__main__ import announcement
from lab.native import listener
from lab.ports import free_ports


@pytest.mark.parametrize("spec", [*FAULTS.values(), *DECOYS.values()], ids=lambda spec: spec.name)
def test_every_fault_says_what_should_be_found(spec):
    """Each fault names an existing rule and its own queues; a decoy names no rule."""
    assert (spec.rule == "") == spec.name.startswith("decoy.") == (spec in DECOYS.values())
    assert spec.rule in {"", *(rule.name for rule in RULES)}
    # The broker chooses the name of a queue that is declared without one.
    known = spec.subject.name or spec.client
    assert spec.subject.kind != "queue" or known.startswith(("fault.", "fault-", "mqtt-subscription-fault-"))
    assert not spec.summary.endswith(".")
    assert set(spec.brokers) <= set(SUITES)


def test_every_name_is_known_once():
    """The tables of the groups do not hide each other's faults."""
    groups = (publishers, consumers, queues, nodes, cluster, clients, topology, probing)

    assert len(FAULTS) == sum(len(group.FAULTS) for group in groups)
    assert all(name == spec.name for name, spec in {**FAULTS, **DECOYS}.items())


def test_a_fault_announces_what_diagnosis_should_say():
    """The virtual host is the one into which it was injected."""
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
    where = f"lab.faults: amqp://guest@127.0.0.1:{port}"
    expected = f"{where}: no AMQP connection (AMQPConnectionError); is RabbitMQ listening there?"
    assert [expected] == done.stderr.splitlines()


def test_the_port_of_a_protocol_is_known_without_statistics():
    """Then the overview lists no listeners, and a tool of the broker does."""
    control = Mock(tool=lambda *_: '{"listeners": [{"protocol": "stream", "port": 5552}]}')

    assert 1883 == listener(lambda *_: {"listeners": [{"protocol": "mqtt", "port": 1883}]}, "mqtt", control)
    assert 5552 == listener(lambda *_: {}, "stream", control)
    with pytest.raises(MissingPart, match=r"^the broker does not listen for mqtt; enable its plugin"):
        listener(lambda *_: {}, "mqtt", control)
