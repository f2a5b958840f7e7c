import pytest

from ackscope.findings import flat
from ackscope.snapshot import Part
from diagnosis.engine import diagnose
from diagnosis.rules import RULES
from diagnosis.text import render_summary
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import queue, snapshot, stats
from tests.unit.diagnosis.queues.films import frame

LOSSES = ("queue-purged", "unexplained-loss", "maxlen-drop-head", "ttl-expiry-loss", "reject-loss", "no-consumer")
FEW = tuple(rule for rule in RULES if rule.name in LOSSES)


def watch(make, until, every=5):
    """Yield the second and the findings of each diagnosis of an exporter that watches from the beginning."""
    window, before = Window.empty("shop"), None
    for second in range(0, until + 1, every):
        window = window.add(snapshot(second, **make(float(second))))
        before = diagnose(window, (), window.latest.taken, Thresholds(), before, rules=FEW)
        yield second, before.findings


def purged(t, *, name="orders", rate=20, takes=15, at=100):
    """A queue whose consumer is too slow, and that somebody empties at this second."""
    done, gone = int(takes * t), int((rate - takes) * at) if t > at else 0
    counters = stats(publish=int(rate * t), deliver=done, deliver_get=done, ack=done)
    ready = int(rate * t) - done - gone
    return frame(queue(name, messages_ready=ready, messages_unacked=0, consumers=1, stats=counters))


@pytest.mark.parametrize("fields", [{}, {"name": "a.b1", "rate": 400, "takes": 100}, {"rate": 20, "takes": 0}])
def test_a_purge_is_reported_for_ten_minutes_and_then_no_more(fields):
    """As a warning while the readings show it, then as information; the law does not report it a second time."""
    reported = {second: [(each.rule, each.severity.value) for each in flat(found)] for second, found in
            watch(lambda t: purged(t, **fields), 860)}  # fmt: skip

    assert [("queue-purged", "warning")] == reported[120]
    assert {"queue-purged"} == {rule for second in range(110, 820, 5) for rule, _ in reported[second]}
    assert [("queue-purged", "info")] == reported[700]
    assert [] == reported[860]


def dropping(t, *, name="orders", until=100):
    """A queue at its length limit, which drops its oldest messages until this second."""
    published = int(10 + 10 * min(t, until))
    return frame(queue(name, messages_ready=10, arguments={"x-max-length": 10}, stats=stats(publish=published)))


def test_messages_that_were_dropped_are_reported_after_it_has_ended():
    """With the time at which it was over; alerts about it are resolved then."""
    reported = dict(watch(dropping, 1200))
    (late,) = (each for each in flat(reported[500]) if each.rule == "maxlen-drop-head")

    assert ("info", True) == (late.severity.value, late.is_over)
    assert f"over since {late.over_since}" in render_summary(late)
    assert [] == [each.rule for each in flat(reported[1200]) if each.rule == "maxlen-drop-head"]


def test_what_begins_again_is_a_new_finding():
    """Its beginning is not that of the one that ended."""

    def twice(t):
        published = int(10 + 10 * (min(t, 100) + max(0.0, t - 1000)))
        return frame(queue(messages_ready=10, arguments={"x-max-length": 10}, stats=stats(publish=published)))

    reported = dict(watch(twice, 1100))
    (first,) = (each for each in flat(reported[90]) if each.rule == "maxlen-drop-head")
    (again,) = (each for each in flat(reported[1100]) if each.rule == "maxlen-drop-head")

    assert (False, None) == (again.is_over, again.over_since)
    assert first.since < again.since


def test_what_is_no_loss_ends_as_before():
    """A queue that has a consumer again needs no reminder."""

    def served(t):
        ready = int(10 + 10 * t) if t < 200 else 0
        counters = stats(publish=int(10 + 10 * t), deliver=0 if t < 200 else int(10 + 10 * t))
        return frame(queue(messages_ready=ready, consumers=0 if t < 200 else 1, stats=counters))

    reported = dict(watch(served, 300))

    assert "no-consumer" in [each.rule for each in flat(reported[195])]
    assert "no-consumer" not in [each.rule for each in flat(reported[300])]


def test_it_is_not_called_over_while_it_cannot_be_judged():
    """Queues that cannot be read may lose messages all the time."""

    def unread(t):
        return dropping(t, until=900) if t < 100 else {"queues": Part(error="timed out")}

    assert [] == [each for each in flat(dict(watch(unread, 300))[300]) if each.is_over]
