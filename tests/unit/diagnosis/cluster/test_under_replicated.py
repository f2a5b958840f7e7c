import pytest

from tests.unit.diagnosis.cluster.scenes import ALL, ONE, THREE, TWO, finding_of, nodes, replicated, told_of
from tests.unit.diagnosis.pictures import film, look, queue, told

RULE = "quorum-queue-under-replicated"


def away(t, at=20.0, *queues):
    """Replicas that leave one node, which runs."""
    return {"nodes": nodes(), "queues": queues or (replicated(online=ALL if t < at else (ONE, TWO)),)}


@pytest.mark.parametrize(
    ("until", "expected"),
    [(25, []), (40, [("info", "node", THREE)]), (400, [("warning", "node", THREE)])],
    ids=["a moment", "some seconds", "minutes"],
)
def test_replicas_that_leave_a_node_are_told_about_the_node(until, expected):
    """A warning only when they stay away."""
    assert expected == told_of(look(film(away, until=until)), RULE)


def test_queues_of_too_few_members_are_one_finding_a_vhost():
    """Information: it is a risk, of two queues here."""

    def frame(_):
        small = [replicated(name, members=(ONE,), online=(ONE,)) for name in ("a", "b")]
        return {"nodes": nodes(), "queues": (*small, replicated(), queue("classic"))}

    verdict = look(film(frame, until=10))

    assert [("info", "vhost", "/")] == told_of(verdict, RULE)
    assert "2 quorum queues in '/' have only 1 of 3" in finding_of(verdict, RULE).summary
    assert "rabbitmq-queues grow" in told(finding_of(verdict, RULE))


def test_a_single_node_has_no_more_members_to_give():
    """Nothing to be done there."""
    frame = {"nodes": nodes()[:1], "queues": (replicated(members=(ONE,), online=(ONE,)),)}

    assert [] == told_of(look(film(lambda _: frame, until=30)), RULE)


def test_a_queue_without_a_majority_is_not_told_twice():
    """It is stopped already."""
    assert [] == told_of(look(film(lambda t: away(t, 0, replicated(online=(ONE,))), until=30)), RULE)


def test_what_is_not_told_is_not_missing():
    """A new queue names no replicas yet."""
    frame = {"nodes": nodes(), "queues": (replicated(online=None), replicated("new", members=None, online=None))}

    assert [] == told_of(look(film(lambda _: frame, until=30)), RULE)
