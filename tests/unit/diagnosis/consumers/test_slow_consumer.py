import pytest

from ackscope.records import ProbeState
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.films import busy, trip
from tests.unit.diagnosis.consumers.own import ever, found, gaps, only, urgent
from tests.unit.diagnosis.pictures import film, look, told


def test_consumers_that_are_slower_than_what_comes_are_found():
    """At first as information, after two minutes as a warning; how long one message takes is told."""
    assert [("slow-consumer", "info", "orders")] == found(look(film(busy(), until=20)))

    finding = only(look(film(busy(), until=200)))

    assert ("slow-consumer", "warning") == (finding.rule, finding.severity)
    assert "'billing' takes 200 ms for one message: 1 consumer of that pace acknowledges 5.0 a second" in finding.cause
    assert "each for 2.0 s" in told(finding)
    assert "start more consumers: 2 of this pace keep up, 1 run" in told(finding)


def test_a_small_backlog_stays_information():
    """It grows slowly, and these consumers work it off in seconds."""
    window = film(busy(comes=56.0, goes=50.0), until=200)

    assert [] == urgent(look(window))


@pytest.mark.parametrize(
    "frame",
    [
        busy(comes=5.0),
        busy(comes=5.2),
        busy(comes=3.0),
        busy(held=5),
        busy(redelivers=50.0),
        busy(on={"ack_required": False}),
        busy(kind="stream"),
        busy(prefetch=0, held=50),
    ],
    ids=["keeps up", "by chance", "drains", "not full", "mostly redelivered", "automatic", "stream", "no limit"],
)
def test_what_is_not_a_slow_consumer(frame):
    """Each has another reason, or none."""
    verdicts = [look(film(frame, until=until)) for until in (20, 60, 200)]

    assert "slow-consumer" not in ever(verdicts)


def test_one_look_is_enough_to_mention_it():
    """Two readings eight seconds apart: it grew, and nobody knows for how long."""
    window = film(busy(), until=8, every=8)

    assert ["slow-consumer"] == [rule for rule, _, _ in found(look(window, thresholds=Thresholds.one_shot()))]


def test_a_quorum_queue_limits_consumers_that_have_no_limit():
    """2000 held of 2000 that it lets them hold."""
    window = film(busy(prefetch=0, held=2000, kind="quorum", comes=100.0, goes=60.0), until=20)

    assert "slow-consumer" in ever([look(window)])


def test_a_prefetch_of_one_and_a_hold_time_of_round_trips_is_a_small_prefetch():
    """25 ms held, 10 ms of round trip: the way takes the time."""
    frame = busy(prefetch=1, comes=50.0, goes=40.0)

    finding = only(look(film(frame, until=30), outcomes=(trip(0.010),)))

    assert ("prefetch-too-small", "info") == (finding.rule, finding.severity)
    assert "acknowledges a message 25 ms after it was sent (10 ms is the round trip of a probe)" in finding.cause
    assert [("prefetch-too-small", "warning", "orders")] == urgent(
        look(film(frame, until=300), outcomes=(trip(0.010),))
    )


def test_a_prefetch_of_one_and_a_hold_time_of_many_round_trips_is_a_slow_handler():
    """25 ms held, 1 ms of round trip."""
    window = film(busy(prefetch=1, comes=50.0, goes=40.0), until=30)

    assert [("slow-consumer", "info", "orders")] == found(look(window, outcomes=(trip(0.001),)))


def test_a_large_prefetch_is_never_too_small():
    """Even where messages are held for a round trip only: then more consumers help, not more prefetch."""
    window = film(busy(prefetch=50, comes=6000.0, goes=5000.0), until=30)

    assert [("slow-consumer", "info", "orders")] == found(look(window, outcomes=(trip(0.010),)))


def test_without_a_round_trip_it_cannot_be_told_and_both_are_said():
    """25 ms may be the way or the handler; who knows the round trip can tell."""
    verdict = look(film(busy(prefetch=1, comes=50.0, goes=40.0), until=30))

    assert [("slow-consumer", "info", "orders")] == found(verdict)
    assert "it may as well be the way to it" in only(verdict).cause
    (gap,) = gaps(verdict, "prefetch-too-small")
    assert "no probe measures the round trip" in gap.because
    assert not gap.permanent


@pytest.mark.parametrize(
    ("goes", "rule"), [(500.0, "prefetch-too-small"), (1.0, "slow-consumer")], ids=["2 ms", "one second"]
)
def test_what_no_network_takes_and_what_no_handler_takes_needs_no_probe(goes, rule):
    """Two milliseconds are the way, a second is the handler."""
    verdict = look(film(busy(prefetch=1, comes=1.5 * goes, goes=goes), until=30))

    assert [rule] == [each for each, _, _ in found(verdict)]
    assert [] == gaps(verdict, "prefetch-too-small")


@pytest.mark.parametrize(
    "probe",
    [trip(0.010, state=ProbeState.FAILED), trip(0.010, doubtful="the loop lags")],
    ids=["failed", "doubtful"],
)
def test_a_probe_that_cannot_be_trusted_does_not_count(probe):
    """Then the round trip is not known."""
    verdict = look(film(busy(prefetch=1, comes=50.0, goes=40.0), until=30), outcomes=(probe,))

    assert gaps(verdict, "prefetch-too-small")


def test_the_round_trip_of_the_queues_own_node_counts():
    """Another node is farther away."""
    frame = busy(prefetch=1, comes=50.0, goes=40.0)

    near = look(film(frame, until=30), outcomes=(trip(0.001), trip(0.050, node="rabbit@far")))

    assert [("slow-consumer", "info", "orders")] == found(near)
