"""Confirms and connects that are as slow as ever, or far slower than ever."""

import pytest

from tests.unit.diagnosis.nodes.machines import asked, frame, outcome, seconds
from tests.unit.diagnosis.pictures import NODE, film, look, told
from tests.unit.diagnosis.probing.heard import outcome as heard
from tests.unit.diagnosis.probing.heard import step
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, aside, band, known, one_of, told_of

QUORUM = ("probe", "", f"confirm/quorum/{NODE}")
WAY = ("probe", "", "handshake/handshake/")


def disk(bands, *quorum, count=100, rtt=0.001, version="4.3.6"):
    """The verdict on these confirms of a quorum queue."""
    probes = (
        outcome("confirm", "quorum", confirm=seconds(*quorum, count=count), node=NODE),
        outcome("confirm", "classic", confirm=seconds(0.001), node=NODE),
        asked(rtt),
    )
    return look(film(frame(version), until=30), outcomes=probes, baselines=known(bands, of=QUORUM))


def test_confirms_that_are_far_slower_than_usual_are_mentioned_though_they_are_quick():
    """60 ms are not slow by themselves; where 3 ms are usual they are."""
    verdict = disk({"confirm_p50": band(0.002, 0.004)}, 0.06)

    assert [] == told_of("slow-disk", disk({}, 0.06))
    assert [("info", "node", NODE)] == told_of("slow-disk", verdict)
    assert "take 60 ms; usual at this hour of the week: 2 to 4 ms, from 6 weeks" in one_of("slow-disk", verdict).summary


@pytest.mark.parametrize(
    ("bands", "told"),
    [
        ({"confirm_p50": band(0.01, 0.04)}, {}),
        ({"confirm_p50": NotYet(NoBand.FEW_DAYS, 2)}, {}),
        ({"confirm_p50": band(0.002, 0.004)}, {"rtt": 0.05}),
        ({"confirm_p50": band(0.002, 0.004)}, {"count": 5}),
    ],
    ids=["within reach", "not yet", "all is slow", "too few"],
)
def test_what_may_have_another_reason_is_not(bands, told):
    """Not much more than usual, or slow throughout, or too few to say."""
    assert [] == told_of("slow-disk", disk(bands, 0.06, **told))


def test_a_few_milliseconds_are_nothing_however_quick_it_usually_is():
    """Ten times as much as usual."""
    assert [] == told_of("slow-disk", disk({"confirm_p50": band(0.0005, 0.001)}, 0.01))


def test_confirms_that_always_take_as_long_are_left_alone():
    """Members of a queue that are far apart; more than that is told."""
    far = {"confirm_p50": band(0.12, 0.2), "confirm_p99": band(0.3, 0.5)}
    usual, slower = disk(far, 0.15, 0.16), disk(far, 0.3, 0.31)

    assert [] == told_of("slow-disk", usual)
    assert [
        "most confirms that wait for the disk took 150 ms; usual at this hour of the week: 120 to 200 ms, from 6 weeks"
    ] == aside("slow-disk", usual)
    assert [("warning", "node", NODE)] == told_of("slow-disk", slower)
    assert "usual median confirm latency 120 to 200 ms" in told(one_of("slow-disk", slower))


def test_a_slow_tenth_is_held_against_what_the_slowest_usually_take():
    """Information by the tail, left alone by the tail."""
    tail = {"confirm_p50": band(0.002, 0.004), "confirm_p99": band(0.3, 0.5)}

    assert [("info", "node", NODE)] == told_of("slow-disk", disk({}, 0.003, 0.31))
    assert [] == told_of("slow-disk", disk(tail, 0.003, 0.31))
    assert [("info", "node", NODE)] == told_of("slow-disk", disk(tail, 0.003, 0.6))


def test_three_slow_days_do_not_make_a_disk_usual():
    """What is left alone takes a week."""
    assert told_of("slow-disk", disk({"confirm_p50": band(0.12, 0.2, days=3)}, 0.15))


def way(bands, tcp):
    """The verdict on a TCP connect that takes so long."""
    probes = (
        heard("handshake", queue="", steps={"tcp": step(tcp)}),
        heard("rtt", steps={"declare": step(tcp + 0.001)}),
    )
    return look(film(lambda _: {}, until=0), outcomes=probes, baselines=known(bands, of=WAY))


def test_a_distance_that_is_always_there_is_left_alone():
    """Another site; it is told where it grows."""
    far = {"tcp_p50": band(0.11, 0.13)}

    assert [] == told_of("probe-path-slow", way(far, 0.12))
    assert 1 == len(aside("probe-path-slow", way(far, 0.12)))
    assert [("warning", "probe", "handshake")] == told_of("probe-path-slow", way(far, 0.25))
    assert [("warning", "probe", "handshake")] == told_of("probe-path-slow", way({}, 0.12))


def test_a_way_that_became_far_longer_is_mentioned_though_it_is_short():
    """8 ms where a third of one is usual; a few milliseconds are nothing."""
    near = {"tcp_p50": band(0.0002, 0.0004)}

    assert [("info", "probe", "handshake")] == told_of("probe-path-slow", way(near, 0.008))
    assert [] == told_of("probe-path-slow", way(near, 0.004))
    assert [] == told_of("probe-path-slow", way({}, 0.008))
