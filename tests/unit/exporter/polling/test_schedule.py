from dataclasses import replace
from itertools import pairwise

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Part
from exporter.broker.cost_model import LOAD_FACTOR
from exporter.broker.reader import PollCost
from exporter.polling.schedule import CLIENT_FAMILIES, UNAVAILABLE_RETRY_SECONDS, EndpointSchedule

NOTHING = PollCost(0.0, 0, 0)
MUCH = 1_000_000_000
"""Bytes of an answer so large that it may cost minutes."""


def at(mono):
    """A time."""
    return Instant(wall=1.7e9 + mono, mono=mono)


def read(schedule, began, took=0.1, cost=0.1, error=None, received=MUCH):
    """One reading by a schedule, started at a time."""
    part = Part(value=() if error is None else None, at=at(began + took), error=error)
    spent = schedule.stats.cost_seconds
    schedule.in_flight = True
    schedule.finish(part, at(began), at(began + took), PollCost(spent, 0, 0), PollCost(spent + cost, 1, received))


def test_a_family_is_due_an_interval_after_its_latest_start():
    """Immediately before the first reading, and never while one is in flight."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    assert schedule.is_due(5, horizon=0)
    read(schedule, 0)
    read(schedule, 100)

    assert not schedule.is_due(5, horizon=104.9)
    assert schedule.is_due(5, horizon=105)
    schedule.in_flight = True
    assert not schedule.is_due(5, horizon=1000)


def test_an_early_start_does_not_shorten_the_average_interval():
    """Rounds every 5 s and an interval of 6 s: one of six rounds is skipped."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    begun = []
    for round_ in range(0, 300, 5):
        if schedule.is_due(6, horizon=round_ + 2.5):
            schedule.start(6)
            begun.append(round_)
            read(schedule, round_)

    assert 49 <= len(begun) <= 51
    assert {5, 10} == {later - before for before, later in pairwise(begun)}


def test_one_outlier_does_not_change_the_cost():
    """The minimum of three: other load makes a reading longer, never shorter."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    seen = []
    for cost in (9.0, 0.1, 9.0, 9.0):
        read(schedule, 0, cost=cost)
        seen.append(schedule.cost)

    assert pytest.approx([9.0, 0.1, 0.1, 0.1]) == seen
    assert schedule.stats.cost_seconds == pytest.approx(27.1)


def test_an_overloaded_broker_does_not_become_invisible():
    """A slow answer counts as a bounded multiple of its usual cost; nor is the broker polled all the time."""
    schedule = EndpointSchedule("exchanges", min_interval=15, min_retry=5)
    read(schedule, 0, cost=0.1)
    for began in (100, 200, 300):
        read(schedule, began, cost=9.0)

    assert pytest.approx(LOAD_FACTOR * 0.1) == schedule.cost
    assert 45 == schedule.corrected_interval(20)
    assert 60 == schedule.corrected_interval(60)


def test_a_larger_answer_costs_more():
    """The baseline is the cost for its size."""
    schedule = EndpointSchedule("exchanges", min_interval=15, min_retry=5)
    read(schedule, 0, cost=0.1, received=MUCH)
    for began in (100, 200, 300):
        read(schedule, began, cost=9.0, received=100 * MUCH)

    assert 9.0 == pytest.approx(schedule.cost)


def test_a_short_answer_is_cheap_however_long_it_takes():
    """Its size bounds its cost from the first reading on; not so for memory."""
    schedule, memory = (
        EndpointSchedule("exchanges", min_interval=15, min_retry=5),
        EndpointSchedule("memory", min_interval=60, min_retry=5),
    )
    for each in (schedule, memory):
        read(each, 0, cost=0.1, received=10_000)

    assert 0.0015 + 0.0025 == pytest.approx(schedule.cost)
    assert 0.1 == pytest.approx(memory.cost)


def test_the_cost_baseline_expires_within_an_hour():
    """A broker that has been slow since then is expensive."""
    schedule = EndpointSchedule("exchanges", min_interval=15, min_retry=5)
    read(schedule, 0, cost=0.1)
    for began in range(100, 4000, 100):
        read(schedule, began, cost=9.0)

    assert 9.0 == pytest.approx(schedule.cost)


def test_an_uncertain_cost_delays_the_second_reading_only_briefly():
    """After one expensive reading the next follows as soon as 5 % of a core allows."""
    schedule, expensive = (
        EndpointSchedule("vhosts", min_interval=15, min_retry=5),
        EndpointSchedule("bindings", min_interval=60, min_retry=5),
    )
    read(schedule, 0, cost=0.9)
    read(expensive, 0, cost=30)
    guess = schedule.corrected_interval(100), schedule.corrected_interval(17), expensive.corrected_interval(3000)
    for _ in range(2):
        read(schedule, 0, cost=0.9)

    assert (60, 17, 600) == guess
    assert schedule.corrected_interval(100) == 100


@pytest.mark.parametrize("name", CLIENT_FAMILIES)
@pytest.mark.parametrize(("cost", "second"), [(0.9, 20), (3, 20), (9, 45)])
def test_client_families_have_an_early_second_reading(name, cost, second):
    """Rules compare two readings, and a broker may be slow only while everything is read at once."""
    schedule = EndpointSchedule(name, min_interval=5, min_retry=5)
    read(schedule, 0, cost=cost)
    guess = schedule.corrected_interval(900)
    read(schedule, 20, cost=cost)

    assert pytest.approx((second, 900)) == (guess, schedule.corrected_interval(900))


def retry_delays(schedule, took):
    """The retry delay after each of eight consecutive failures."""
    found = []
    for _ in range(8):
        read(schedule, 0, took=took, error="away")
        found.append(schedule.retry_after)
    return found


@pytest.mark.parametrize(
    ("name", "took", "expected"),
    [
        ("channels", 0.1, [5, 10, 20, 40, 60, 60, 60, 60]),
        ("channels", 10, [20, 40, 60, 60, 60, 60, 60, 60]),
        ("overview", 0.1, [5.1] * 8),
        ("overview", 10, [15] * 8),
        ("channels", 40, [80] * 8),
    ],
)
def test_failures_are_retried_with_backoff(name, took, expected):
    """From the interval or twice its duration up to a minute; the overview without backoff."""
    assert pytest.approx(expected) == retry_delays(EndpointSchedule(name, min_interval=5, min_retry=5), took)


def test_a_family_with_a_long_interval_is_retried_early():
    """A failure does not cost a whole long interval."""
    schedule = EndpointSchedule("bindings", min_interval=60, min_retry=5)
    read(schedule, 0, error="500")

    assert schedule.is_due(60, horizon=5)


def test_a_good_reading_resets_the_backoff():
    """The next failure retry_delays as the first did."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    retry_delays(schedule, 0.1)
    read(schedule, 1000)
    assert schedule.retry_after is None
    read(schedule, 2000, error="away")

    assert schedule.retry_after == 5


def test_a_reset_family_is_due_immediately():
    """Whatever it was waiting for."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    retry_delays(schedule, 0.1)
    schedule.reset()

    assert schedule.is_due(5, horizon=0)


def test_a_reading_from_before_the_reset_is_retried_immediately():
    """It started while the broker was unreachable, so its failure says nothing."""
    schedule = EndpointSchedule("channels", min_interval=5, min_retry=5)
    retry_delays(schedule, 10)
    schedule.start(5)
    schedule.reset()
    read(schedule, 100, took=10, error="away")

    assert schedule.is_due(5, horizon=110)
    read(schedule, 110, took=10, error="away")
    assert schedule.retry_after == 20


def test_an_unavailable_family_is_retried_rarely():
    """Every five minutes, until it is available."""
    schedule = EndpointSchedule("consumers", min_interval=5, min_retry=5)
    read(schedule, 0, error="no statistics")
    schedule.mark_unavailable()
    assert schedule.unavailable
    assert not schedule.is_due(5, horizon=UNAVAILABLE_RETRY_SECONDS - 1)
    assert schedule.is_due(5, horizon=UNAVAILABLE_RETRY_SECONDS)
    read(schedule, 400)

    assert not schedule.unavailable


def test_families_with_long_intervals_are_spread_over_time():
    """The second readings of families that started together start apart."""
    schedules = [
        EndpointSchedule(name, min_interval=60, min_retry=5)
        for name in ("bindings", "policies", "limits", "features", "auth")
    ]
    for schedule in schedules:
        read(schedule, 0)
    starts = {min(second for second in range(200) if schedule.is_due(60, second)) for schedule in schedules}

    assert len(starts) >= 3
    assert all(30 < start <= 60 for start in starts)


def test_a_step_without_a_reading_has_a_cost_but_is_no_attempt():
    """Statistics of queues, which the next reading contains."""
    schedule = EndpointSchedule("queues", min_interval=5, min_retry=5)
    read(schedule, 0)
    schedule.in_flight = True
    schedule.finish_step(at(5), PollCost(3.0, 9, 900))

    assert (1, 3.0, 9, 900) == (
        schedule.stats.attempts,
        schedule.stats.cost_seconds,
        schedule.stats.requests,
        schedule.stats.bytes_total,
    )
    assert not schedule.is_due(5, horizon=9)


def test_a_part_is_the_same_object_until_its_interval_changes():
    """Whatever is derived from a part is derived again only from another object."""
    schedule = EndpointSchedule("queues", min_interval=5.0, min_retry=5.0)
    read(schedule, 0.0)
    schedule.stats = replace(schedule.stats, interval=150.0)
    first, again = schedule.current_part(), schedule.current_part()
    schedule.stats = replace(schedule.stats, interval=5.0)

    assert first is again
    assert (150.0, 5.0) == (first.every, schedule.current_part().every)
    assert first.value == schedule.part.value
