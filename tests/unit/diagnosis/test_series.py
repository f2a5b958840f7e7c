import pytest

from diagnosis.series import count, delta, last, life, span, steps, stretch
from diagnosis.window import Timestamped
from tests.unit.diagnosis.pictures import moment, queue, stats


def series(*acks, every=5.0):
    """Return readings of a queue with these ack counters; None means no counter."""
    return tuple(
        Timestamped(moment(number * every), queue(stats=stats() if ack is None else stats(ack=ack)))
        for number, ack in enumerate(acks)
    )


def test_a_counter_that_appears_counts_from_zero():
    """The broker shows a counter from its first event on; before that it is 0."""
    assert 7 == delta(series(None, 7), "ack")


def test_a_counter_that_never_appeared_gained_nothing():
    """Two readings without the counter are two readings at 0."""
    assert 0 == delta(series(None, None), "ack")


def test_several_counters_add_up():
    """Absent ones count as 0 in a sum too."""
    assert 5 == count(stats(ack=3, get=2), "ack", "get", "deliver")


@pytest.mark.parametrize("after", [2, None], ids=["fell", "vanished"])
def test_a_counter_that_falls_starts_another_life(after):
    """Readings before a restart are left out, so no sum spans it."""
    lived = life(series(10, 20, after, 4 if after else None))

    assert 2 == len(lived)
    assert (2 if after else 0) == delta(lived, "ack")


def test_a_stretch_ends_at_the_latest_moment():
    """Only the tail of the series counts; an earlier match is ignored."""
    still = stretch(series(1, 1, 2, 2, 2), lambda older, newer: delta((older, newer), "ack") == 0)

    assert (3, 10.0) == (len(still), span(still))


def test_a_stretch_of_nothing_is_nothing():
    """An object that was never read has no stretch."""
    assert () == stretch((), lambda older, newer: True)


def test_the_last_seconds_are_at_least_that_long():
    """It is the shortest tail that spans the time, or the whole series if it is shorter."""
    whole = series(1, 2, 3, 4)

    assert [10.0, 15.0] == [span(last(whole, 7.0)), span(last(whole, 60.0))]


def test_steps_are_wide_enough_for_the_brokers_refresh():
    """Pairs closer than the broker's refresh would show no increase, or twice the increase."""
    pairs = steps(series(0, 1, 2, 3, 4), 8.0)

    assert [(0, 2), (2, 4)] == [(older.value.stats.ack, newer.value.stats.ack) for older, newer in pairs]


def test_steps_of_one_moment_are_none():
    """A single reading gives no pair."""
    assert () == steps(series(1), 8.0)
