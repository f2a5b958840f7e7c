import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.cluster.scenes import (
    ALL,
    ONE,
    THREE,
    TWO,
    cause_of,
    finding_of,
    node,
    nodes,
    replicated,
    reported,
)
from tests.unit.diagnosis.pictures import evidence, film, look, queue

RULE = "node-down"


def dies(at=20.0, *stopped, **fields):
    """Nodes that stop at a second of the film."""

    def frame(t):
        return {"nodes": nodes(*(stopped or (THREE,))) if t >= at else nodes(**fields)}

    return frame


@pytest.mark.parametrize(("until", "severity"), [(25, "info"), (75, "info"), (80, "warning"), (300, "warning")])
def test_a_node_that_is_down_is_reported_soon_and_a_warning_after_a_minute(until, severity):
    """A restart is over by then."""
    assert [(severity, "node", THREE)] == reported(look(film(dies(), until=until)), RULE)


def test_one_poll_is_not_enough():
    """A node that starts is for a moment not reported as running."""
    assert [] == reported(look(film(dies(), until=20)), RULE)


def test_a_single_diagnosis_reports_it():
    """Two readings 8 s apart."""
    window = film(dies(0), until=8, every=8)

    assert [("warning", "node", THREE)] == reported(look(window, thresholds=Thresholds.as_if_lasting()), RULE)


def test_without_a_majority_it_is_critical_at_once():
    """Two of three, each a cause of its own."""
    result = look(film(dies(20, TWO, THREE), until=25))

    assert {("critical", "node", TWO), ("critical", "node", THREE)} == set(reported(result, RULE))


def test_maintenance_is_suppressed():
    """Somebody drained it on purpose."""

    def frame(_):
        return {"nodes": (node(ONE), node(TWO), node(THREE, running=False, being_drained=True))}

    result = look(film(frame, until=30))

    assert [] == reported(result, RULE)
    assert [(THREE, "maintenance")] == [
        (each.subject.name, each.reason) for each in result.suppressed if each.rule == RULE
    ]


def test_a_node_without_a_state_is_not_reported_as_down():
    """Absent is not false."""
    assert [] == reported(look(film(lambda _: {"nodes": (node(ONE), node(TWO, running=None))}, until=30)), RULE)


def test_it_names_the_affected_queues_and_what_the_node_used():
    """Classic queues of the node, replicas, and a limit that it was near."""

    def frame(t):
        homed = queue("bills", node=THREE) if t < 20 else queue("bills", node=THREE, state="down", messages_ready=None)
        return {**dies(fd_used=950, fd_total=1000, uptime_seconds=3600.0)(t), "queues": (homed, replicated())}

    finding = finding_of(look(film(frame, until=30)), RULE)

    assert [{"vhost": "/", "name": "bills"}] == evidence(finding, "classic_queues").facts["queues"]
    assert (1, 1) == (finding.facts["classic_queues"], finding.facts["replicated_queues"])
    assert {"descriptors": 0.95} == finding.facts["near_limits"]
    assert ["bills", "orders"] == [queue.name for queue in finding.involved.queues]


def test_missing_replicas_on_the_node_are_a_consequence():
    """One cause is one finding."""

    def frame(t):
        return {**dies()(t), "queues": (replicated(online=ALL if t < 30 else (ONE, TWO)),)}

    result = look(film(frame, until=60))

    assert RULE == cause_of(result, "quorum-queue-under-replicated")
