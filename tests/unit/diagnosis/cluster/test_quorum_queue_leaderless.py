import pytest

from ackscope.snapshot import HealthCheck
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, finding_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import OK, film, look

RULE = "quorum-queue-leaderless"
FAILS = HealthCheck(name="quorum-queues-without-elected-leaders", ok=False, reason="Detected quorum queues without")


def headless(t, at=20.0, **fields):
    """A queue that has enough replicas and no leader."""
    return {"nodes": nodes(), "queues": (replicated(**{"leader": ONE if t < at else None, **fields}),)}


@pytest.mark.parametrize(
    ("until", "expected"),
    [(25, []), (35, [("info", "queue", "orders")]), (45, [("critical", "queue", "orders")])],
    ids=["an election", "late", "stopped"],
)
def test_an_election_is_given_time(until, expected):
    """It takes seconds; after that clients are blocked."""
    assert expected == reported(look(film(headless, until=until)), RULE)


def test_a_leader_on_a_stopped_node_is_no_leader():
    """While a majority is left."""

    def frame(_):
        return {"nodes": nodes(THREE), "queues": (replicated(leader=THREE, online=(ONE, TWO)),)}

    assert [("critical", "queue", "orders")] == reported(look(film(frame, until=30)), RULE)


def test_more_than_five_queues_are_one_finding():
    """Its subject is what all of them are in."""

    def frame(_):
        return {"nodes": nodes(), "queues": tuple(replicated(f"q{number}", leader=None) for number in range(8))}

    result = look(film(frame, until=45))

    assert [("critical", "vhost", "/")] == reported(result, RULE)
    assert 8 == finding_of(result, RULE).facts["queue_count"]


def test_without_a_majority_it_is_another_fault():
    """No leader could be elected."""
    frame = lambda t: headless(t, 0, state="minority", online=(ONE,))  # noqa: E731  a film in a line

    assert [] == reported(look(film(frame, until=60)), RULE)


def test_the_brokers_own_check_is_enough():
    """It finds queues whose old leader is still named; it names no queue."""

    def frame(t):
        return {"nodes": nodes(), "queues": (replicated(),), "health": (OK, FAILS) if t >= 20 else (OK,)}

    assert [] == reported(look(film(frame, until=25)), RULE)
    assert [("critical", "cluster", "shop")] == reported(look(film(frame, until=45)), RULE)


def test_versions_without_the_check_are_inconclusive():
    """4.0 still names a leader that is gone."""
    window = film(lambda _: {"nodes": nodes(), "queues": (replicated(),), "version": "4.0.5"}, until=10)
    gaps = [gap for gap in look(window).inconclusive if gap.rule == RULE]

    assert [("no_check", True)] == [(gap.reason, gap.permanent) for gap in gaps]
