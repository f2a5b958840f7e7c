import pytest

from ackscope.snapshot import Overview
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, cause_of, finding_of, node, replicated, reported
from tests.unit.diagnosis.pictures import film, look, text

RULE = "node-draining"


def drained(t, since=20.0, **fields):
    """The third node is put into maintenance."""
    return (node(ONE), node(TWO), node(THREE, being_drained=t >= since, **fields))


def test_maintenance_is_information():
    """At once, so that its consequences are understood."""
    result = look(film(lambda t: {"nodes": drained(t)}, until=20))

    assert [("info", "node", THREE)] == reported(result, RULE)
    commands = [step.command for step in text(finding_of(result, RULE)).steps]
    assert f"rabbitmq-upgrade -n {THREE} revive" in commands


def test_maintenance_that_was_probably_forgotten_is_a_warning():
    """After nearly two hours."""
    window = film(lambda t: {"nodes": drained(t, 0)}, until=7000, every=50)

    assert [("warning", "node", THREE)] == reported(look(window), RULE)


def test_a_version_that_does_not_report_maintenance_has_no_finding():
    """3.10 can be drained and does not report it."""
    window = film(lambda _: {"nodes": (node(ONE, being_drained=None),), "version": "3.10.8"}, until=30)

    assert [] == reported(look(window), RULE)


def test_replicas_that_it_stopped_are_a_consequence():
    """A drained node has no replicas of quorum queues online."""

    def frame(t):
        return {"nodes": drained(t), "queues": (replicated(online=(ONE, TWO) if t >= 20 else (ONE, TWO, THREE)),)}

    assert RULE == cause_of(look(film(frame, until=60)), "quorum-queue-under-replicated")


@pytest.mark.parametrize(
    ("others", "severity"),
    [
        ((), "critical"),
        ((node(TWO, running=False),), "critical"),
        ((node(TWO, being_drained=True),), "critical"),
        ((node(TWO),), "info"),
        ((node(TWO, running=None),), "info"),
    ],
    ids=["no other node", "the other is down", "the other too", "the other runs", "the other is unknown"],
)
def test_without_another_node_the_broker_is_out_of_service(others, severity):
    """On purpose or not; with another node, clients go there."""

    def frame(t):
        connected = Overview(node=ONE, connections=14 if t < 20 else 0)
        return {"nodes": (node(ONE, being_drained=t >= 20), *others), "overview": connected}

    (finding,) = [
        each for each in look(film(frame, until=40)).findings if (each.rule, each.subject.name) == (RULE, ONE)
    ]

    assert severity == finding.severity
    shown = text(finding)
    assert (severity == "critical") == ("the whole broker accepts no clients" in shown.summary)
    assert (severity == "critical") == any("0, 14 before" in each.value for each in shown.evidence)
