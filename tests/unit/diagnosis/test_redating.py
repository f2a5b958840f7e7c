"""The wall clock of ackscope's machine is set while it watches."""

import typing
from dataclasses import fields, is_dataclass, replace

import pytest

from ackscope.clock import Instant
from ackscope.findings import flat
from ackscope.snapshot import Snapshot
from diagnosis.engine import diagnose
from diagnosis.redating import TIMED, Redating, redated_result
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.test_consumer_ack_timeout import holding
from tests.unit.diagnosis.pictures import channel, connection, moment, queue, snapshot, stats, stuck
from tests.unit.diagnosis.test_engine import troubled

JUMPS = (7200.0, -7200.0, 90.0, -90.0)
UNTIL, SET_AT = 200, 100


def watched(frame, jump, set_at=SET_AT, until=UNTIL):
    """Return the window and the last of the verdicts that follow one another; the clock is set at a second."""
    window, verdict = Window.empty("shop"), None
    for second in range(0, until + 1, 5):
        taken, now = snapshot(second, **frame(second)), moment(second)
        if second >= set_at:
            taken, now = Redating(jump).of(taken), now.shifted(jump)
        if second == set_at:
            # The clock was set after this list had been read.
            taken = replace(taken, queues=snapshot(second, **frame(second)).queues)
        window = window.add(taken)
        verdict = diagnose(window, (), now, Thresholds(), verdict)
    return window, verdict


def shown(verdict):
    """What a verdict says about its findings, with their times and durations."""
    held = [(*each.key, each.severity, each.since, each.facts.get("held_seconds")) for each in flat(verdict.findings)]
    return held, verdict.inconclusive, verdict.suppressed


@pytest.mark.parametrize("frame", [troubled, stuck, holding()], ids=["troubled", "stuck", "holding"])
@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_is_set_changes_nothing_but_dates(frame, jump):
    """The same findings, which have lasted for as long, and the same reasons for having none."""
    _, calm = watched(frame, 0.0)
    _, after = watched(frame, jump)

    assert calm.findings
    assert shown(redated_result(calm, jump)) == shown(after)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_window_is_by_one_clock(jump):
    """Times of readings of before are moved; they are as far apart as they were, and none is in the future."""
    window, _ = watched(lambda t: {"queues": (queue(stats=stats(ack=int(t))),)}, jump)
    readings = [seen.at for seen in window.readings("queues")]

    assert {round(WALL_LESS_MONO + jump, 3)} == {round(at.wall - at.mono, 3) for at in readings}
    assert sorted(at.mono for at in readings) == [at.mono for at in readings]


WALL_LESS_MONO = moment(0).wall - moment(0).mono


@pytest.mark.parametrize("jump", JUMPS)
def test_a_reading_of_before_is_one_reading(jump):
    """It stays in later snapshots until the family is read again, and its times are moved once."""
    idle = channel(idle_since=moment(-30).wall)
    first = snapshot(0, channels=(idle,), connections=(connection(connected_at=moment(-60).wall),))
    window = Window.empty("shop").add(first)
    for second in (5, 10, 15):
        fresh = Redating(jump).of(snapshot(second, queues=(queue(stats=stats(ack=second)),)))
        window = window.add(replace(fresh, channels=first.channels, connections=first.connections))
    (channels,), (connections,) = window.readings("channels"), window.readings("connections")

    assert (moment(0).shifted(jump), moment(0).shifted(jump)) == (channels.at, connections.at)
    assert 30.0 == channels.at.wall - channels.value[0].idle_since
    assert 60.0 == connections.at.wall - connections.value[0].connected_at
    assert 4 == len(window.readings("queues"))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_finding_ends_as_soon_as_without_a_jump(jump):
    """It would stay for two hours if the clock was set back by as much, and end at once if it was set forward."""

    def healed(t):
        return stuck(t) if t < SET_AT else {}

    after = [bool(watched(healed, jump, until=until)[1].findings) for until in (SET_AT + 10, SET_AT + 40)]

    assert [True, False] == after


def test_the_present_moment_is_by_the_clock_of_the_window():
    """The clock may be set between a snapshot and its diagnosis."""
    window = Window.empty("shop").add(snapshot(0))

    assert moment(2) == window.now(moment(2))
    assert moment(2) == window.now(moment(2).shifted(-3600.0))
    assert moment(2) == Window.empty("shop").now(moment(2))


def test_what_did_not_change_stays_the_same_object():
    """An idle queue has no time, and is held once."""
    idle = queue("idle")
    frame = {"queues": (idle, queue("busy", details_at=moment(0)))}
    (moved, _), (again, _) = (
        seen.value
        for seen in watched(lambda t: frame if t else {**frame, "channels": ()}, 900.0, until=SET_AT)[0].readings(
            "queues"
        )[-2:]
    )

    assert moved is again


def kinds(hint, seen):
    """Yield the dataclasses that a type contains, at any depth."""
    for inner in typing.get_args(hint):
        yield from kinds(inner, seen)
    if is_dataclass(hint) and hint not in seen:
        seen.add(hint)
        yield hint
        for inner in typing.get_type_hints(hint).values():
            yield from kinds(inner, seen)


def test_every_instant_in_a_window_is_moved():
    """A new field that is an instant, or contains one, has to be listed."""
    found = set(kinds(Window, set()))
    timed = {Instant}
    while more := {
        kind
        for kind in found - timed
        if any(timed & {hint, *kinds(hint, set())} for hint in typing.get_type_hints(kind).values())
    }:
        timed |= more
    listed = {
        (kind, each.name)
        for kind in timed - {Instant, Window}
        for each in fields(kind)
        if timed & {typing.get_type_hints(kind)[each.name], *kinds(typing.get_type_hints(kind)[each.name], set())}
    }

    assert Snapshot in found
    assert set() == {(kind, name) for kind, name in listed if name not in TIMED.get(kind, ())}
