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
    told_of,
)
from tests.unit.diagnosis.pictures import film, look, queue, told

RULE = "node-down"


def dies(at=20.0, *stopped, **fields):
    """Nodes that end at a second of the film."""

    def frame(t):
        return {"nodes": nodes(*(stopped or (THREE,))) if t >= at else nodes(**fields)}

    return frame


@pytest.mark.parametrize(("until", "severity"), [(25, "info"), (75, "info"), (80, "warning"), (300, "warning")])
def test_a_node_that_is_down_is_told_soon_and_a_warning_after_a_minute(until, severity):
    """A restart is over by then."""
    assert [(severity, "node", THREE)] == told_of(look(film(dies(), until=until)), RULE)


def test_one_poll_is_not_enough():
    """A node that starts is for a moment not seen to run."""
    assert [] == told_of(look(film(dies(), until=20)), RULE)


def test_one_look_tells_of_it():
    """Two readings eight seconds apart."""
    window = film(dies(0), until=8, every=8)

    assert [("warning", "node", THREE)] == told_of(look(window, thresholds=Thresholds.one_shot()), RULE)


def test_without_a_majority_it_is_critical_at_once():
    """Two of three, each a cause of its own."""
    verdict = look(film(dies(20, TWO, THREE), until=25))

    assert {("critical", "node", TWO), ("critical", "node", THREE)} == set(told_of(verdict, RULE))


def test_maintenance_is_set_aside():
    """Whoever drained it knows."""

    def frame(_):
        return {"nodes": (node(ONE), node(TWO), node(THREE, running=False, being_drained=True))}

    verdict = look(film(frame, until=30))

    assert [] == told_of(verdict, RULE)
    assert [THREE] == [aside.subject.name for aside in verdict.suppressed if aside.rule == RULE]


def test_a_node_that_is_not_told_to_run_is_not_called_down():
    """Absent is not false."""
    assert [] == told_of(look(film(lambda _: {"nodes": (node(ONE), node(TWO, running=None))}, until=30)), RULE)


def test_it_says_what_is_concerned_and_what_the_node_had_used():
    """Classic queues that live there, replicas, and a limit that it was near to."""

    def frame(t):
        homed = queue("bills", node=THREE) if t < 20 else queue("bills", node=THREE, state="down", messages_ready=None)
        return {**dies(fd_used=950, fd_total=1000, uptime_seconds=3600.0)(t), "queues": (homed, replicated())}

    text = told(finding_of(look(film(frame, until=30)), RULE))

    assert "1: 'bills' ('/')" in text
    assert "1 classic queue cannot be used" in text
    assert "it used 95% of its file descriptors" in text
    assert f"shrink {THREE}" in text


def test_replicas_that_went_with_it_hang_under_it():
    """One cause is one finding."""

    def frame(t):
        return {**dies()(t), "queues": (replicated(online=ALL if t < 30 else (ONE, TWO)),)}

    verdict = look(film(frame, until=60))

    assert RULE == cause_of(verdict, "quorum-queue-under-replicated")
