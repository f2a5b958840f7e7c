import pytest

from ackscope.snapshot import HealthCheck
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, finding_of, nodes, replicated, reported
from tests.unit.diagnosis.pictures import OK, channel, film, look, stats, text

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


def still(t, *, at=20.0, vhost="hotel", idle=0, pending=1, goes_on=False, members=(ONE,), start=None, fails=True):
    """A queue takes nothing more, and is listed with its former leader; a publisher of its vhost waits.

    Args:
        t: second of the film.
        at: second at which its process ends.
        vhost: of queue and publisher.
        idle: other quorum queues of the vhost in which nothing happens.
        pending: commands to quorum queues for which the publisher waits.
        goes_on: whether the queue takes messages all the same.
        members: of the queue.
        start: messages a second of an idle queue before.
        fails: whether the broker's check fails.
    """
    n = int(5 * (t if goes_on else min(t, at)))
    counters = stats(publish=100 + n, ack=100 + n, deliver=100 + n)
    own = replicated("bookings", vhost=vhost, leader=ONE, members=members, online=members, stats=counters)
    others = tuple(
        replicated(f"q{i}", vhost=vhost, stats=stats(publish=50 + int((start or 0) * t))) for i in range(idle)
    )
    waits = channel(
        vhost=vhost,
        confirm=True,
        messages_unconfirmed=1 if t >= at else 0,
        pending_raft_commands=pending,
        stats=stats(publish=100 + n, confirm=100 + int(5 * min(t, at))),
    )
    health = (OK, FAILS) if fails and t >= at else (OK,)
    return {"nodes": nodes(), "queues": (own, *others), "channels": (waits,), "health": health}


@pytest.mark.parametrize("fields", [{}, {"vhost": "pay desk"}, {"idle": 9}, {"members": (ONE, TWO, THREE)}])
def test_a_queue_that_stands_still_since_the_check_fails_is_named(fields):
    """The broker lists it with its leader; what was idle before is not meant."""
    result = look(film(lambda t: still(t, **fields), until=75))

    assert [("critical", "queue", "bookings")] == reported(result, RULE)
    finding = finding_of(result, RULE)
    assert fields.get("vhost", "hotel") == finding.subject.vhost
    assert ["pub-confirm-stall"] == [each.rule for each in finding.consequences]
    assert ("members" not in fields) == finding.facts["single_member"]
    assert "has probably had no leader" in text(finding).summary


def test_in_one_look_few_queues_are_named():
    """Nobody saw which of them moved before."""
    few = look(film(lambda t: still(t, at=0.0, idle=1), until=15))
    many = look(film(lambda t: still(t, at=0.0, idle=9), until=15))

    # Its consequence is a warning: nothing is confirmed.
    assert [("warning", "vhost", "hotel")] == reported(few, RULE)
    assert "One or more of the quorum queues 'bookings', 'q0'" in text(finding_of(few, RULE)).summary
    assert [("info", "cluster", "shop")] == reported(many, RULE)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"goes_on": True}, [("critical", "cluster", "shop")]),
        ({"pending": 0}, [("critical", "cluster", "shop")]),
        ({"fails": False}, []),
    ],
    ids=["it takes messages", "the publisher waits for something else", "all have leaders"],
)
def test_a_queue_that_may_be_well_is_not_named(fields, expected):
    """The finding is about the cluster then, as the check is."""
    assert expected == reported(look(film(lambda t: still(t, **fields), until=75)), RULE)
