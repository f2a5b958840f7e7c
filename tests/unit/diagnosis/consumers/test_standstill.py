import pytest

from ackscope.clock import Instant
from diagnosis.rules.consumers._shared.standstill import (
    handling_time,
    held,
    idle_since,
    most_held,
    never_falls,
    partial_standstill,
    unsettled,
)
from diagnosis.series import span
from diagnosis.window import Timestamped
from tests.unit.diagnosis.pictures import channel, queue, stats


def series(of, *, until=120, every=5):
    """Readings of a queue: `of(t)` gives unacked, acked, delivered and, if it is not 0, redelivered."""
    found = []
    for second in range(0, until + 1, every):
        unacked, acked, delivered, *again = of(second)
        counters = stats(ack=acked, deliver=delivered, redeliver=again[0] if again else 0)
        found.append(Timestamped(Instant(wall=second, mono=second), queue(messages_unacked=unacked, stats=counters)))
    return tuple(found)


def test_a_standstill_lasts_while_nothing_is_settled():
    """Deliveries may go on."""
    history = series(lambda t: (max(0, t - 60), min(t, 60), t))

    assert 55 == span(unsettled(history))


def test_rejections_settle():
    """They are delivered, and not held."""
    assert 0 == span(unsettled(series(lambda t: (5, 0, 10 * t))))


def test_requeued_messages_are_settled():
    """They are delivered again."""
    assert 0 == span(unsettled(series(lambda t: (10, 0, 10 + t, t))))


@pytest.mark.parametrize("batch", [20, 40])
def test_a_batch_takes_as_long_as_the_interval_between_acknowledgements(batch):
    """On average there would be one a second."""

    def batches(t):
        return (t % batch, t - t % batch, t)

    history = series(batches, until=5 * batch - 5)
    stalled = unsettled(history)

    assert batch - 10 <= handling_time(history, stalled) <= batch
    assert batch - 5 == most_held(history, stalled)


def test_never_falling_allows_for_a_little_noise():
    """A number that is read while messages are in flight rises and falls by a few."""
    assert 120 == span(never_falls(series(lambda t: (t + t % 2, t, t)), held))
    assert 20 == span(never_falls(series(lambda t: (t % 25, t, t)), held))


def leak(share, *, rate=10, hold=0.0):
    """Readings of consumers that hold each message for some seconds, and never settle a share of them."""

    def reading(t):
        delivered = round(rate * t)
        lost = round(share * delivered)
        busy = round(min(t, hold) * rate)
        return (lost + busy, max(0, delivered - lost - busy), delivered)

    return reading


@pytest.mark.parametrize(("share", "rate"), [(0.5, 2), (0.2, 10), (0.05, 100)])
def test_a_share_that_is_never_settled_is_seen_at_any_rate(share, rate):
    """The rest is acknowledged."""
    found = partial_standstill(series(leak(share, rate=rate)), 8.0)

    assert found is not None
    assert 110 <= found.seconds
    assert share * rate * 110 <= found.grown <= share * rate * 120


@pytest.mark.parametrize(
    "healthy",
    [
        leak(0.0, hold=12),
        lambda t: (t % 20 * 5, 5 * (t - t % 20), 5 * t),
        lambda t: (20 + t // 12, int(t * (4 + t / 60)), int(t * (4 + t / 60)) + 20 + t // 12),
        lambda t: (30 if t else 0, 8 * t, 8 * t + 30),
        lambda t: (20 if t == 120 else 0, 10 * t, 10 * t + 20),
        lambda t: (20 if t == 120 else int(t > 60), 10 * t, 10 * t + 20),
        lambda t: (t, 12 * t - 3 * (t > 0), 12 * t),
        lambda t: (t, 11 * t - 3 * (t > 0), 12 * t, t),
        lambda t: (t // 8, 6 * t - t // 8, 6 * t),
    ],
    ids=[
        *("long jobs side by side", "batches", "rising traffic", "one burst", "a burst now", "a burst now, and noise"),
        *("moments of another time than the counters", "such moments, and some returned", "few seconds of work"),
    ],
)
def test_what_only_looks_like_growth(healthy):
    """What they hold stops growing, or grows with the traffic."""
    assert partial_standstill(series(healthy), 8.0) is None


@pytest.mark.parametrize("every", [5, 12])
def test_a_share_that_is_lost_since_lately_counts_from_then(every):
    """Before that, all was acknowledged."""

    def lately(t):
        return (2 * max(0, t - 60), 10 * t - 2 * max(0, t - 60), 10 * t)

    found = partial_standstill(series(lately, every=every), 8.0)

    assert found is not None
    assert 60 == found.seconds


@pytest.mark.parametrize("rate", [2, 12, 200])
def test_growth_that_the_counters_do_not_show_is_none_and_theirs_counts(rate):
    """The number of messages is read at another moment: it may show more, or the counters may."""

    def by(number, counters):
        def reading(t):
            held_now, uncounted = (int(share * rate * t / 4) for share in (number, counters))
            return held_now, rate * t - uncounted, rate * t

        return partial_standstill(series(reading), 8.0)

    assert by(1.0, 0.05) is None
    assert 24 * rate == by(1.0, 0.8).grown
    assert 24 * rate == by(0.8, 1.0).grown


@pytest.mark.parametrize(("share", "rate", "until"), [(0.025, 6, 300), (0.03, 50, 240)])
def test_a_small_share_that_is_never_settled_is_seen_later(share, rate, until):
    """At first, consumers that are a little slower for a moment hold as many."""
    assert partial_standstill(series(leak(share, rate=rate), until=until // 3), 8.0) is None
    assert partial_standstill(series(leak(share, rate=rate), until=until), 8.0) is not None


def test_the_earliest_idle_since_of_unchanged_readings_counts():
    """The broker renews it once a minute."""

    def reading(t, since):
        return Timestamped(Instant(wall=t, mono=t), channel(messages_unacked=5, idle_since=since))

    assert 3.0 == idle_since((reading(55, 3.0), reading(60, 3.0), reading(65, 63.0)))
    assert idle_since((reading(55, 3.0), reading(60, None))) is None
