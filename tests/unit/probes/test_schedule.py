from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from probes.schedule import Schedule

MANY = 1_000_000


@given(rate=st.floats(0.1, 5000), seed=st.integers(0, 99), count=st.integers(1, 500))
def test_one_message_falls_into_every_slot(rate, seed, count):
    """After N slots exactly N messages were due, each in its own slot and in order."""
    schedule = Schedule(rate, 100.0, Random(seed))

    taken = schedule.take(100.0 + count / rate * (1 - 1e-12), MANY)

    assert abs(len(taken) - count) <= 1
    assert taken == sorted(taken)
    assert all(
        100.0 + index / rate <= due + 1e-9 and due <= 100.0 + (index + 1) / rate + 1e-9
        for index, due in enumerate(taken)
    )


def test_gaps_are_not_a_fixed_period():
    """So send times do not synchronise with a timer of the broker."""
    taken = Schedule(5, 0.0, Random(1)).take(100.0, MANY)

    gaps = {round(after - before, 3) for before, after in pairwise(taken)}

    assert len(gaps) > 200


@given(seed=st.integers(0, 99), step=st.floats(0.001, 3.0))
def test_a_stall_changes_no_intended_time(seed, step):
    """Rare calls give the same intended times as frequent calls, so nothing is left out after a stall."""
    seldom = Schedule(20, 0.0, Random(seed)).take(10.0, MANY)
    schedule, often, now = Schedule(20, 0.0, Random(seed)), [], 0.0
    while now < 10.0:
        now = min(10.0, now + step)
        often += schedule.take(now, MANY)

    assert seldom == often


def test_the_bound_leaves_the_rest_due():
    """What did not fit stays due, with its intended time."""
    schedule = Schedule(10, 0.0, Random(1))
    whole = Schedule(10, 0.0, Random(1)).take(2.0, MANY)

    first, rest = schedule.take(2.0, 5), schedule.take(2.0, MANY)

    assert whole == first + rest
    assert len(first) == 5


def test_nothing_is_taken_without_room():
    """A full ledger takes nothing and loses nothing."""
    schedule = Schedule(10, 0.0, Random(1))

    assert [] == schedule.take(5.0, 0)
    assert len(schedule.take(5.0, MANY)) == 50


def test_a_pause_is_a_gap_and_not_filled():
    """Nothing becomes due during a pause; what was due before stays due."""
    schedule = Schedule(10, 0.0, Random(1))
    schedule.take(1.0, 7)
    schedule.pause(1.0)

    assert len(schedule.take(60.0, MANY)) == 3

    assert schedule.next_at == float("inf")

    schedule.resume(60.0)
    after = schedule.take(61.0, MANY)

    assert all(60.0 <= due <= 61.0 for due in after)
    assert len(after) == 10


def test_giving_up_takes_only_what_is_too_old():
    """Messages that waited too long are handed out once, to be counted; younger ones stay due."""
    schedule = Schedule(10, 0.0, Random(1))

    given_up = schedule.give_up(3.0)

    assert len(given_up) == 30
    assert all(due <= 3.0 for due in given_up)
    assert all(due > 3.0 for due in schedule.take(5.0, MANY))
