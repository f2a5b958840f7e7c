import pytest

from ackscope.findings import Finding, Severity, Subject
from ackscope.topology import NodeMemory
from diagnosis.rules.nodes.alarm import HELD_CONSUMERS
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.nodes.machines import GB
from tests.unit.diagnosis.pictures import ALARM, NODE, connection, consumer, film, look, moment, only, queue


def about(kind, name, vhost=None):
    """A finding about something."""
    return Finding(
        rule="stuck-consumer",
        severity=Severity.WARNING,
        subject=Subject(kind=kind, name=name, vhost=vhost),
        since=None,
        summary="",
        cause="",
        evidence=(),
        next_steps=(),
        runbook="",
    )


@pytest.mark.parametrize(
    ("state", "subject", "follows"),
    [
        ("blocked", ("queue", "orders", "/"), True),
        ("running", ("queue", "orders", "/"), False),
        ("blocked", ("queue", "other", "/"), False),
        ("blocked", ("node", NODE, None), False),
    ],
    ids=["held back", "not held back", "another queue", "no queue"],
)
def test_consumers_on_connections_that_are_held_back_follow_from_the_alarm(state, subject, follows):
    """Their acknowledgements are not read: that is the alarm, and no fault of theirs."""
    parts = {"queues": (queue(),), "consumers": (consumer(),), "connections": (connection(state=state),)}
    view = View(film(lambda _: {"health": (ALARM,), **parts}, until=5), (), moment(5), Thresholds())
    finding = about(*subject)

    shared = set(HELD_CONSUMERS.of_cause(view, finding)) & set(HELD_CONSUMERS.of_other(view, finding))

    assert follows == bool(shared)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"quorum_queue_procs": 6 * GB, "binary": 1 * GB}, "queues and their messages"),
        ({"connection_readers": 3 * GB, "connection_channels": 2 * GB}, "connections and channels"),
        ({"mgmt_db": 5 * GB}, "statistics for the management API"),
        ({"allocated_unused": 5 * GB}, "free, kept by the allocators"),
        ({"code": 9 * GB}, None),
        ({"binary": 1 * GB, "mgmt_db": 1 * GB}, None),
    ],
    ids=["queues", "connections", "statistics", "unused", "what every node needs", "nothing stands out"],
)
def test_what_fills_the_memory_is_said(parts, words):
    """Where one part has a third of it or more."""
    use = NodeMemory(node=NODE, parts=parts, rss=10 * GB, strategy="rss")
    finding = only(look(film(lambda _: {"health": (ALARM,), "memory": (use,)}, until=5)))

    assert (words is not None) == ("Most of the memory is" in finding.cause)
    assert words is None or words in finding.cause
