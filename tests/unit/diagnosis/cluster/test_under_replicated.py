import pytest

from tests.unit.diagnosis.cluster.scenes import ALL, ONE, THREE, TWO, finding_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import film, look, queue, text

RULE = "quorum-queue-under-replicated"


def away(t, at=20.0, *queues):
    """Replicas that disappear from one node, which runs."""
    return {"nodes": nodes(), "queues": queues or (replicated(online=ALL if t < at else (ONE, TWO)),)}


@pytest.mark.parametrize(
    ("until", "expected"),
    [(25, []), (40, [("info", "node", THREE)]), (400, [("warning", "node", THREE)])],
    ids=["a moment", "some seconds", "minutes"],
)
def test_missing_replicas_are_a_finding_about_the_node(until, expected):
    """It is a warning only if they stay away."""
    assert expected == reported(look(film(away, until=until)), RULE)


@pytest.mark.parametrize(
    ("drained", "state"),
    [(False, "running"), (True, "maintenance"), (None, "running_or_maintenance")],
    ids=["runs", "maintenance", "3.10"],
)
def test_the_state_of_the_node_is_named(drained, state):
    """3.10 does not report maintenance."""
    frame = lambda t: {**away(t), "nodes": nodes(being_drained=drained)}  # noqa: E731  a film in a line

    assert state == finding_of(look(film(frame, until=40)), RULE).facts["node_state"]


def test_queues_with_too_few_members_are_one_finding_for_each_vhost():
    """It is information: a risk."""

    def frame(_):
        small = [replicated(name, members=(ONE,), online=(ONE,)) for name in ("a", "b")]
        return {"nodes": nodes(), "queues": (*small, replicated(), queue("classic"))}

    result = look(film(frame, until=10))

    assert [("info", "vhost", "/")] == reported(result, RULE)
    finding = finding_of(result, RULE)
    assert (2, [1], 3) == tuple(finding.facts[key] for key in ("queue_count", "member_counts", "nodes"))
    assert (
        f"rabbitmq-queues grow {THREE} all --vhost-pattern '^/$' --queue-pattern '.*'" == text(finding).steps[0].command
    )


def test_a_single_node_cannot_have_more_members():
    """There is nothing to do."""
    frame = {"nodes": nodes()[:1], "queues": (replicated(members=(ONE,), online=(ONE,)),)}

    assert [] == reported(look(film(lambda _: frame, until=30)), RULE)


def test_a_queue_without_a_majority_is_not_reported_twice():
    """It is stopped already."""
    assert [] == reported(look(film(lambda t: away(t, 0, replicated(online=(ONE,))), until=30)), RULE)


def test_replicas_that_are_not_reported_are_not_missing():
    """A new queue reports no replicas yet."""
    frame = {"nodes": nodes(), "queues": (replicated(online=None), replicated("new", members=None, online=None))}

    assert [] == reported(look(film(lambda _: frame, until=30)), RULE)
