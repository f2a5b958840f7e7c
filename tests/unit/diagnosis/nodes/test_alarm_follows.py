import pytest

from ackscope.findings import Finding, Severity, Subject
from ackscope.topology import NodeMemory
from diagnosis.rules.nodes._shared.resource_alarm import BLOCKED_CONSUMERS
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.nodes.machines import GB
from tests.unit.diagnosis.pictures import ALARM, NODE, connection, consumer, film, look, moment, only, queue


def about(kind, name, vhost=None):
    """A finding with this subject."""
    return Finding(rule="stuck-consumer", severity=Severity.WARNING, subject=Subject(kind=kind, name=name, vhost=vhost))


@pytest.mark.parametrize(
    ("state", "subject", "follows"),
    [
        ("blocked", ("queue", "orders", "/"), True),
        ("running", ("queue", "orders", "/"), False),
        ("blocked", ("queue", "other", "/"), False),
        ("blocked", ("node", NODE, None), False),
    ],
    ids=["blocked", "not blocked", "another queue", "no queue"],
)
def test_a_queue_whose_consumers_are_on_blocked_connections_is_a_consequence_of_the_alarm(state, subject, follows):
    """The broker does not read their acks: the alarm is the cause, not the consumers."""
    parts = {"queues": (queue(),), "consumers": (consumer(),), "connections": (connection(state=state),)}
    view = View(film(lambda _: {"health": (ALARM,), **parts}, until=5), (), moment(5), Thresholds())
    finding = about(*subject)

    shared = set(BLOCKED_CONSUMERS.of_cause(view, finding)) & set(BLOCKED_CONSUMERS.of_other(view, finding))

    assert follows == bool(shared)


@pytest.mark.parametrize(
    ("parts", "group"),
    [
        ({"quorum_queue_procs": 6 * GB, "binary": 1 * GB}, "queues"),
        ({"connection_readers": 3 * GB, "connection_channels": 2 * GB}, "connections"),
        ({"mgmt_db": 5 * GB}, "statistics"),
        ({"allocated_unused": 5 * GB}, "unused"),
        ({"code": 9 * GB}, None),
        ({"binary": 1 * GB, "mgmt_db": 1 * GB}, None),
    ],
    ids=["queues", "connections", "statistics", "unused", "what every node needs", "nothing stands out"],
)
def test_a_group_that_uses_a_third_of_the_memory_or_more_is_named(parts, group):
    """Apart from what every node needs."""
    use = NodeMemory(node=NODE, parts=parts, rss=10 * GB, strategy="rss")
    finding = only(look(film(lambda _: {"health": (ALARM,), "memory": (use,)}, until=5)))

    assert group == finding.facts["dominant_group"]
