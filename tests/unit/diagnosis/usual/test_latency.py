"""Confirms and connects that are as slow as usual, or far slower than usual."""

import pytest

from tests.unit.diagnosis.nodes.machines import frame, outcome, round_trip_probe, seconds
from tests.unit.diagnosis.pictures import NODE, evidence, film, look
from tests.unit.diagnosis.probing.heard import outcome as heard
from tests.unit.diagnosis.probing.heard import step
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, aside, band, known, one_of, reported_of

QUORUM = ("probe", "", f"confirm/quorum/{NODE}")
PATH = ("probe", "", "handshake/handshake/")


def disk(bands, *quorum, count=100, rtt=0.001, version="4.3.6"):
    """The result for these confirms of a quorum queue."""
    probes = (
        outcome("confirm", "quorum", confirm=seconds(*quorum, count=count), node=NODE),
        outcome("confirm", "classic", confirm=seconds(0.001), node=NODE),
        round_trip_probe(rtt),
    )
    return look(film(frame(version), until=30), outcomes=probes, baselines=known(bands, of=QUORUM))


def test_confirms_that_are_far_slower_than_usual_are_reported_although_they_are_fast():
    """60 ms are not slow by themselves; they are if 3 ms are usual."""
    result = disk({"confirm_p50": band(0.002, 0.004)}, 0.06)

    assert [] == reported_of("slow-disk", disk({}, 0.06))
    assert [("info", "node", NODE)] == reported_of("slow-disk", result)
    facts = one_of("slow-disk", result).facts
    assert (0.06, "baseline") == (facts["median_seconds"], facts["judged_by"])
    assert (0.002, 0.004, 6) == tuple(facts["band_of"][key] for key in ("low", "high", "values"))


@pytest.mark.parametrize(
    ("bands", "change"),
    [
        ({"confirm_p50": band(0.01, 0.04)}, {}),
        ({"confirm_p50": NotYet(NoBand.FEW_DAYS, 2)}, {}),
        ({"confirm_p50": band(0.002, 0.004)}, {"rtt": 0.05}),
        ({"confirm_p50": band(0.002, 0.004)}, {"count": 5}),
    ],
    ids=["within reach", "not yet", "all is slow", "too few"],
)
def test_confirms_that_may_be_slow_for_another_reason_are_not_reported(bands, change):
    """Not much more than usual, or everything is slow, or too few confirms."""
    assert [] == reported_of("slow-disk", disk(bands, 0.06, **change))


def test_a_few_milliseconds_are_not_reported_however_fast_confirms_usually_are():
    """Even if they are ten times as many as usual."""
    assert [] == reported_of("slow-disk", disk({"confirm_p50": band(0.0005, 0.001)}, 0.01))


def test_confirms_that_always_take_as_long_are_suppressed():
    """Members of a queue are far apart; more than that is reported."""
    far = {"confirm_p50": band(0.12, 0.2), "confirm_p99": band(0.3, 0.5)}
    usual, slower = disk(far, 0.15, 0.16), disk(far, 0.3, 0.31)

    assert [] == reported_of("slow-disk", usual)
    assert [("usual_confirms", 0.15, True)] == [
        (each.reason, each.facts["confirm_seconds"], each.facts["most"])
        for each in usual.suppressed
        if each.rule == "slow-disk"
    ]
    assert [("warning", "node", NODE)] == reported_of("slow-disk", slower)
    band_of = evidence(one_of("slow-disk", slower), "baseline").facts["band_of"]
    assert (0.12, 0.2) == (band_of["low"], band_of["high"])


def test_a_slow_p90_is_compared_with_the_usual_p99():
    """It is information, and suppressed, by the slowest confirms."""
    tail = {"confirm_p50": band(0.002, 0.004), "confirm_p99": band(0.3, 0.5)}

    assert [("info", "node", NODE)] == reported_of("slow-disk", disk({}, 0.003, 0.31))
    assert [] == reported_of("slow-disk", disk(tail, 0.003, 0.31))
    assert [("info", "node", NODE)] == reported_of("slow-disk", disk(tail, 0.003, 0.6))


def test_three_slow_days_do_not_make_a_disk_usual():
    """Only a week of history suppresses a finding."""
    assert reported_of("slow-disk", disk({"confirm_p50": band(0.12, 0.2, days=3)}, 0.15))


def path(bands, tcp):
    """The result for a TCP connect that takes so long."""
    probes = (
        heard("handshake", queue="", steps={"tcp": step(tcp)}),
        heard("rtt", steps={"declare": step(tcp + 0.001)}),
    )
    return look(film(lambda _: {}, until=0), outcomes=probes, baselines=known(bands, of=PATH))


def test_a_distance_that_is_always_there_is_suppressed():
    """Another site; it is reported if it takes longer."""
    far = {"tcp_p50": band(0.11, 0.13)}

    assert [] == reported_of("probe-path-slow", path(far, 0.12))
    assert 1 == len(aside("probe-path-slow", path(far, 0.12)))
    assert [("warning", "probe", "handshake")] == reported_of("probe-path-slow", path(far, 0.25))
    assert [("warning", "probe", "handshake")] == reported_of("probe-path-slow", path({}, 0.12))


def test_a_path_that_became_far_slower_is_reported_although_it_is_fast():
    """8 ms where 0.3 ms are usual; a few milliseconds are nothing."""
    near = {"tcp_p50": band(0.0002, 0.0004)}

    assert [("info", "probe", "handshake")] == reported_of("probe-path-slow", path(near, 0.008))
    assert [] == reported_of("probe-path-slow", path(near, 0.004))
    assert [] == reported_of("probe-path-slow", path({}, 0.008))
