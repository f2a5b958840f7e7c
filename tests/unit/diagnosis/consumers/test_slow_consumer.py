from dataclasses import replace

import pytest

from ackscope.findings import Certainty
from ackscope.records import ProbeState
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.films import busy, trip
from tests.unit.diagnosis.consumers.results import ever, found, inconclusive, only, urgent
from tests.unit.diagnosis.pictures import evidence, film, look, text


def test_consumers_slower_than_the_publishers_are_found():
    """Information at first, a warning after 2 min; the finding says how long one message takes."""
    assert [("slow-consumer", "info", "orders")] == found(look(film(busy(), until=20)))
    assert Certainty.EARLY == only(look(film(busy(), until=20))).certainty

    finding = only(look(film(busy(), until=200)))

    assert ("slow-consumer", "warning") == (finding.rule, finding.severity)
    assert (["billing"], 5.0, 10.0) == tuple(finding.facts[key] for key in ("clients", "ack_rate", "publish_rate"))
    assert (0.2, 2.0) == (finding.facts["seconds_per_message"], finding.facts["hold_seconds"])
    assert (1, 2) == (finding.facts["consumers"], finding.facts["consumers_needed"])
    assert 5.0 == evidence(finding, "acked").value


@pytest.mark.parametrize(
    "only",
    [{"of": {"arguments": {"x-single-active-consumer": True}}}, {"on": {"exclusive": True}}],
    ids=["single active", "exclusive"],
)
def test_more_consumers_are_no_advice_where_only_one_gets_messages(only):
    """They would wait, or be refused."""
    alone, shared = (str(text(next(iter(look(film(busy(**each), until=200)).findings))).steps) for each in (only, {}))

    assert "More consumers do not help" in alone
    assert "Start more consumers" not in alone
    assert "Start more consumers" in shared


@pytest.mark.parametrize(("goes", "measure"), [(0.5, False), (0.9, False), (2.0, True), (5.0, True)])
def test_a_slow_handler_is_not_cured_by_a_higher_prefetch(goes, measure):
    """The round trip is no large part of the time of a message that takes a second."""
    steps = str(text(next(iter(look(film(busy(prefetch=1, goes=goes), until=300)).findings))).steps)

    assert measure == ("Measure the round trip" in steps)
    assert measure != ("Do not raise the prefetch" in steps)


def test_a_small_backlog_stays_information():
    """It grows slowly, and these consumers process it within seconds."""
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
        busy(prefetch=0, held=50),
    ],
    ids=["keeps up", "noise", "drains", "not full", "mostly redelivered", "automatic", "no limit"],
)
def test_what_is_not_a_slow_consumer(frame):
    """Each has another reason, or none."""
    results = [look(film(frame, until=until)) for until in (20, 60, 200)]

    assert "slow-consumer" not in ever(results)


def test_a_single_look_is_enough():
    """Two readings 8 s apart: the queue grew, and it is not known for how long."""
    window = film(busy(), until=8, every=8)

    assert ["slow-consumer"] == [rule for rule, _, _ in found(look(window, thresholds=Thresholds.as_if_lasting()))]


@pytest.mark.parametrize(("comes", "severity"), [(2.6, "warning"), (20.0, "info")])
def test_a_backlog_tells_for_how_long_it_has_grown(comes, severity):
    """One look. At the present growth it took more than 2 min, or 14 s."""
    window = film(busy(comes=comes, goes=2.0), until=8, every=8)

    assert [("slow-consumer", severity, "orders")] == found(look(window, thresholds=Thresholds.brief()))


def test_a_quorum_queue_limits_consumers_that_have_no_limit():
    """They hold the 2000 messages that it allows."""
    window = film(busy(prefetch=0, held=2000, kind="quorum", comes=100.0, goes=60.0), until=20)

    assert "slow-consumer" in ever([look(window)])


def test_prefetch_1_and_a_hold_time_of_a_few_round_trips_is_a_small_prefetch():
    """Messages are held for 25 ms and the round trip takes 10 ms, so the network takes the time."""
    frame = busy(prefetch=1, comes=50.0, goes=40.0)

    finding = only(look(film(frame, until=30), outcomes=(trip(0.010),)))

    assert ("prefetch-too-small", "info") == (finding.rule, finding.severity)
    assert (0.025, 0.010) == (finding.facts["hold_seconds"], finding.facts["round_trip_seconds"])
    assert 0.010 == evidence(finding, "round_trip").value
    assert [("prefetch-too-small", "warning", "orders")] == urgent(
        look(film(frame, until=300), outcomes=(trip(0.010),))
    )


@pytest.mark.parametrize("named", ["Shovel west-to-east", "Federation link (upstream: west)"])
@pytest.mark.parametrize(("comes", "goes"), [(50.0, 40.0), (900.0, 700.0)])
def test_a_link_does_not_wait_for_the_network_to_its_source(named, comes, goes):
    """It acknowledges when its target confirms. A client with a name like that is none."""
    frame = busy(prefetch=1, comes=comes, goes=goes)

    def of(client):
        def named_so(t):
            made = frame(t)
            return {**made, "connections": tuple(replace(each, client_name=client) for each in made["connections"])}

        return ever([look(film(named_so, until=200), outcomes=(trip(0.010),))])

    assert "prefetch-too-small" not in of(named)
    assert "prefetch-too-small" in of(named.lower())


def test_prefetch_1_and_a_hold_time_of_many_round_trips_is_a_slow_handler():
    """Messages are held for 25 ms and the round trip takes 1 ms."""
    window = film(busy(prefetch=1, comes=50.0, goes=40.0), until=30)

    assert [("slow-consumer", "info", "orders")] == found(look(window, outcomes=(trip(0.001),)))


def test_a_large_prefetch_is_never_too_small():
    """Even where messages are held for one round trip only: more consumers help then, not a larger prefetch."""
    window = film(busy(prefetch=50, comes=6000.0, goes=5000.0), until=30)

    assert [("slow-consumer", "info", "orders")] == found(look(window, outcomes=(trip(0.010),)))


def test_without_a_round_trip_prefetch_too_small_is_inconclusive():
    """25 ms may be the network or the handler; the finding names both."""
    result = look(film(busy(prefetch=1, comes=50.0, goes=40.0), until=30))

    assert [("slow-consumer", "info", "orders")] == found(result)
    assert only(result).facts["round_trip_needed"]
    assert [("no_round_trip", {"queues": ["orders"]}, False)] == [
        (each.reason, each.facts, each.permanent) for each in inconclusive(result, "prefetch-too-small")
    ]


@pytest.mark.parametrize(
    ("goes", "rule"), [(500.0, "prefetch-too-small"), (1.0, "slow-consumer")], ids=["2 ms", "one second"]
)
def test_very_short_and_very_long_hold_times_need_no_probe(goes, rule):
    """2 ms are the network, 1 s is the handler."""
    result = look(film(busy(prefetch=1, comes=1.5 * goes, goes=goes), until=30))

    assert [rule] == [each for each, _, _ in found(result)]
    assert [] == inconclusive(result, "prefetch-too-small")


@pytest.mark.parametrize(
    "probe",
    [trip(0.010, state=ProbeState.FAILED), trip(0.010, doubtful="the loop lags")],
    ids=["failed", "doubtful"],
)
def test_a_probe_that_failed_or_is_doubtful_does_not_count(probe):
    """The round trip is not known then."""
    result = look(film(busy(prefetch=1, comes=50.0, goes=40.0), until=30), outcomes=(probe,))

    assert inconclusive(result, "prefetch-too-small")


def test_the_round_trip_to_the_node_of_the_queue_counts():
    """Another node is farther away."""
    frame = busy(prefetch=1, comes=50.0, goes=40.0)

    near = look(film(frame, until=30), outcomes=(trip(0.001), trip(0.050, node="rabbit@far")))

    assert [("slow-consumer", "info", "orders")] == found(near)
