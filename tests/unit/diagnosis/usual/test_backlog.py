"""Queues that grow at an hour at which they always grow, and similar ones that are not usual."""

import pytest

from tests.unit.diagnosis.consumers.films import busy, trip
from tests.unit.diagnosis.pictures import ALARM, film, look, text
from tests.unit.diagnosis.queues.films import flowing, frame
from tests.unit.diagnosis.queues.test_queue_overload import busy as surging
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, aside, band, known, one_of, reported_of, usual_line

NIGHTLY = {"ready": band(0, 40_000), "acked": band(4, 6), "published": band(8, 12)}


def slow(bands, *, until=200, parts=None, **fields):
    """Return the diagnosis of a queue that grows behind consumers at capacity."""
    shown = busy(**fields)
    window = film(lambda t: {**shown(t), **(parts or {})}, until=until)
    return look(window, baselines=None if bands is None else known(bands), outcomes=(trip(0.0005),))


def test_a_backlog_that_is_there_every_night_is_left_alone():
    """It is suppressed with the reason and the basis of the band."""
    verdict = slow(NIGHTLY)

    assert [("warning", "queue", "orders")] == reported_of("slow-consumer", slow(None))
    assert [] == reported_of("slow-consumer", verdict)
    (left_out,) = [each for each in verdict.suppressed if each.rule == "slow-consumer"]
    assert ("usual_backlog", 1100) == (left_out.reason, left_out.facts["ready"])
    assert (0, 40_000, True, 6) == tuple(left_out.facts["band_of"][key] for key in ("low", "high", "of_week", "values"))


@pytest.mark.parametrize(
    "bands",
    [
        {**NIGHTLY, "ready": band(0, 500)},
        {**NIGHTLY, "ready": band(0, 40_000, days=3)},
        {**NIGHTLY, "ready": NotYet(NoBand.FEW_DAYS, 2)},
        {**NIGHTLY, "acked": band(40, 60)},
        {},
    ],
    ids=["more than usual", "three days", "not yet", "slower than usual", "nothing known"],
)
def test_what_is_not_usual_is_reported(bands):
    """It is larger than ever, has too little history, or its consumers are slower than usual."""
    assert [("warning", "queue", "orders")] == reported_of("slow-consumer", slow(bands))


@pytest.mark.parametrize(
    "arguments",
    [{"x-max-length": 5000}, {"x-message-ttl": 60_000}, {"x-expires": 60_000}, {"x-max-length-bytes": 5000}],
    ids=lambda value: next(iter(value)),
)
def test_a_queue_that_may_lose_messages_is_never_left_alone(arguments):
    """A usual loss is still reported."""
    assert reported_of("slow-consumer", slow(NIGHTLY, of={"arguments": arguments}))


def test_while_an_alarm_is_in_force_nothing_is_left_alone():
    """The backlog uses the resource that the node runs out of."""
    verdict = slow(NIGHTLY, parts={"health": (ALARM,)})

    assert [] == aside("slow-consumer", verdict)
    assert reported_of("slow-consumer", verdict)


def test_a_small_prefetch_is_left_alone_by_the_same_reason():
    """prefetch-too-small is the other rule for the same symptoms."""
    fast = {"comes": 1200.0, "goes": 1000.0, "prefetch": 1}
    verdict = slow({"ready": band(0, 90_000)}, **fast)

    assert reported_of("prefetch-too-small", slow(None, **fast))
    assert [] == reported_of("prefetch-too-small", verdict)
    assert ["usual_backlog"] == [each.reason for each in verdict.suppressed if each.rule == "prefetch-too-small"]


def test_the_cause_says_whether_consumers_or_load_changed():
    """The baseline of this hour shows which of them changed."""
    slower = one_of("slow-consumer", slow({"acked": band(40, 60), "published": band(8, 12)}))
    more = one_of("slow-consumer", slow({"acked": band(4, 6), "published": band(1, 2)}))

    assert ["acked_less", "published_more"] == [each.facts["compared"]["change"] for each in (slower, more)]
    assert "acknowledge less than usual: 40 to 60/s at this hour of the week, from 6 weeks." in text(slower).cause
    assert [
        "usual ack rate: 4 to 6/s at this hour of the week, from 6 weeks",
        "usual publish rate: 1 to 2/s at this hour of the week, from 6 weeks",
        "usual messages ready: not known yet: no history of this object",
    ] == usual_line(more)


def overload(bands, *, until=120, **fields):
    """The result for a queue that receives more than its consumers process."""
    window = film(lambda t: surging(t, **fields), until=until, start=40.0)
    return look(window, baselines=known(bands) if bands is not None else None)


def test_a_surge_that_began_before_the_first_poll_is_seen_by_its_baseline():
    """The consumers are as fast as usual, and five times the usual number of messages is published."""
    bands = {"published": band(5, 6), "acked": band(5, 12)}

    assert [] == reported_of("queue-overload", overload(None))
    assert [("info", "queue", "orders")] == reported_of("queue-overload", overload(bands))
    assert "unusual_load" == one_of("queue-overload", overload(bands)).facts["reason"]


@pytest.mark.parametrize(
    "bands",
    [
        {"published": band(5, 6), "acked": band(25, 30)},
        {"published": band(5, 15), "acked": band(5, 12)},
        {"published": NotYet(NoBand.FEW_DAYS, 2)},
    ],
    ids=["consumers are slower, too", "not that much more", "not yet"],
)
def test_other_growth_is_no_surge(bands):
    """It is left to the rules about consumers."""
    assert [] == reported_of("queue-overload", overload(bands))


def test_a_surge_that_comes_every_night_is_suppressed():
    """It is suppressed like the backlog of slow consumers."""
    window = film(surging, until=260)
    verdict = look(window, baselines=known({"ready": band(0, 40_000)}))

    assert [] == reported_of("queue-overload", verdict)
    assert 1 == len(aside("queue-overload", verdict))


def waits(bands, **fields):
    """The result for a long queue whose oldest message waits for minutes."""
    made = {"published": 2.0, "acked": 2.0, "ready": 5000, "unacked": 10, "type": "quorum", **fields}
    window = film(lambda t: frame(flowing(t, **made)), until=400)
    return look(window, baselines=known(bands))


def test_the_head_of_a_usual_backlog_is_old_as_usual():
    """The head waits behind the backlog; if the backlog is larger than ever, it is reported."""
    usual = waits({"ready": band(0, 9000)})

    assert [] == reported_of("stale-head", usual)
    assert [("stale-head", "behind_usual_backlog")] == [(each.rule, each.reason) for each in usual.suppressed]
    assert [("warning", "queue", "orders")] == reported_of("stale-head", waits({"ready": band(0, 900)}))
