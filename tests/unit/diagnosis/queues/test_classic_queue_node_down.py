import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, told
from tests.unit.diagnosis.queues.films import of, one

RULE = "classic-queue-node-down"
DOWN = "rabbit@two"


def away(name, state="stopped", **fields):
    """A queue as it is listed while its node is away: no counts at all."""
    nothing = dict.fromkeys(("messages_ready", "messages_unacked", "messages", "consumers"))
    return queue(name, **{"state": state, "node": DOWN, **nothing, **fields})


def shot(until, *queues, running=False, listed=True):
    """The verdict on a cluster of two nodes after so many seconds."""
    nodes = (Node(name=NODE, running=True), *([Node(name=DOWN, running=running)] if listed else []))
    return look(film(lambda _: {"queues": queues, "nodes": nodes}, until=until))


@pytest.mark.parametrize("state", ["stopped", "down"])
def test_it_is_critical_at_once(state):
    """Whether the node was stopped in order or crashed."""
    assert [("critical", DOWN)] == of(RULE, shot(0, away("a", state)))


def test_forty_queues_of_one_node_are_one_finding():
    """It lists a few, and says how many."""
    finding = one(RULE, shot(5, *(away(f"q{n:02d}") for n in range(40))))

    assert "40 classic queues on node 'rabbit@two'" in finding.summary
    assert "and 37 more" in finding.summary
    assert "do not delete these queues" in told(finding)


def test_where_the_node_runs_it_takes_two_minutes():
    """Its queues may be about to start."""
    assert [] == of(RULE, shot(60, away("a"), running=True))
    assert [("critical", DOWN)] == of(RULE, shot(130, away("a"), running=True))
    assert "restart_vhost" in told(one(RULE, shot(130, away("a"), running=True)))


def test_a_node_that_is_not_listed_is_no_node_that_is_down():
    """It was forgotten; then it takes as long, and is said."""
    assert "not a member" in one(RULE, shot(130, away("a"), listed=False)).cause


@pytest.mark.parametrize(
    "fields",
    [{"type": "quorum", "state": "down"}, {"state": "running"}, {"state": None}, {"node": None}],
    ids=["quorum", "running", "no state", "no node"],
)
def test_other_queues_are_left_alone(fields):
    """A quorum queue has other copies; one without a state has just been declared."""
    assert [] == of(RULE, shot(130, away("a", **fields)))
