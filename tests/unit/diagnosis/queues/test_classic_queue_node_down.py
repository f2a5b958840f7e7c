import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, text
from tests.unit.diagnosis.queues.films import of, one

RULE = "classic-queue-node-down"
DOWN = "rabbit@two"


def unreachable(name, state="stopped", **fields):
    """A queue as it is listed while its node is down: no counts at all."""
    nothing = dict.fromkeys(("messages_ready", "messages_unacked", "messages", "consumers"))
    return queue(name, **{"state": state, "node": DOWN, **nothing, **fields})


def shot(until, *queues, running=False, listed=True):
    """The result for a cluster of two nodes after this many seconds."""
    nodes = (Node(name=NODE, running=True), *([Node(name=DOWN, running=running)] if listed else []))
    return look(film(lambda _: {"queues": queues, "nodes": nodes}, until=until))


@pytest.mark.parametrize("state", ["stopped", "down"])
def test_it_is_critical_at_once(state):
    """Whether the node was shut down or crashed."""
    assert [("critical", DOWN)] == of(RULE, shot(0, unreachable("a", state)))


def test_forty_queues_of_one_node_are_one_finding():
    """It names all of them; the text names a few and says how many there are."""
    finding = one(RULE, shot(5, *(unreachable(f"q{n:02d}") for n in range(40))))

    assert (40, "down", 40) == (finding.facts["queue_count"], finding.facts["node_state"], len(finding.involved.queues))
    assert "and 37 more" in text(finding).summary


def test_if_the_node_is_running_it_takes_two_minutes():
    """Its queues may be about to start."""
    assert [] == of(RULE, shot(60, unreachable("a"), running=True))
    assert [("critical", DOWN)] == of(RULE, shot(130, unreachable("a"), running=True))
    assert "running" == one(RULE, shot(130, unreachable("a"), running=True)).facts["node_state"]


def test_a_node_that_is_not_listed_is_not_a_node_that_is_down():
    """It was removed from the cluster; then it takes two minutes too."""
    assert "not_listed" == one(RULE, shot(130, unreachable("a"), listed=False)).facts["node_state"]


@pytest.mark.parametrize(
    "fields",
    [{"type": "quorum", "state": "down"}, {"state": "running"}, {"state": None}, {"node": None}],
    ids=["quorum", "running", "no state", "no node"],
)
def test_other_queues_are_not_reported(fields):
    """A quorum queue has other replicas; one without a state has just been declared."""
    assert [] == of(RULE, shot(130, unreachable("a", **fields)))
