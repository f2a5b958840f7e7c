from dataclasses import replace

import pytest

from ackscope.counters import MessageStats
from ackscope.snapshot import Overview, Part, Snapshot
from diagnosis.window import Window
from exporter.api.sparkline_series import (
    by_details_time,
    counter_value,
    gauge_points,
    queue_series,
    rate_points,
    recent_readings,
)
from tests.unit.exporter.api.test_columns import at, queue, window


def film(*readings, step=10):
    """Return a window of overviews at this interval; None means a failed poll."""
    found, part = Window.empty("shop"), Part()
    for number, value in enumerate(readings):
        moment = at(number * step)
        part = replace(part, error="away") if value is None else Part(value=value, at=moment)
        found = found.add(Snapshot(cluster="shop", taken=moment, overview=part))
    return found


def published(number):
    """Return an overview with this counter."""
    return Overview(stats=MessageStats(publish=number))


def of(overview):
    """Return the counter of an overview."""
    return counter_value(overview.stats, "publish")


def test_rates_are_of_stretches_long_enough_to_tell():
    """The broker refreshes its figures every 5 s: points are 20 s apart, the newest last."""
    seen = film(*(published(100 * number) for number in range(7)))

    assert [(40.0, 10.0), (20.0, 10.0), (0.0, 10.0)] == rate_points(recent_readings(seen, "overview"), of, at(60))


def test_a_counter_that_fell_reports_nothing():
    """A node of the cluster has been restarted: the others' counts must not look like a peak."""
    seen = film(*map(published, (10_000, 10_200, 3_000, 3_400)), step=20)

    assert [(40.0, 10.0), (20.0, None), (0.0, 20.0)] == rate_points(recent_readings(seen, "overview"), of, at(60))


def test_readings_far_apart_are_not_joined():
    """A gap stays a gap, in rates and in levels."""
    seen = film(published(0), *[None] * 30, published(300), published(500), step=20)

    assert [(20.0, None), (0.0, 10.0)] == rate_points(recent_readings(seen, "overview"), of, at(640))
    assert [(640.0, 0), (640.0, None), (20.0, 300), (0.0, 500)] == gauge_points(
        recent_readings(seen, "overview"), of, at(640)
    )


def test_a_line_goes_back_half_an_hour():
    """The window spans only ten minutes, but the trail of the cluster is longer."""
    seen = film(*(published(10 * number) for number in range(360)))
    points = rate_points(recent_readings(seen, "overview"), of, at(3590))
    ages = [ago for ago, _ in points]

    assert 1700 < ages[0] <= 1800
    assert sorted(ages, reverse=True) == ages
    assert {1.0} == {round(value, 6) for _, value in points}


@pytest.mark.parametrize(
    ("stats", "expected"),
    [(MessageStats(publish=3), 3), (MessageStats(ack=1), 0), (MessageStats(), None)],
    ids=["reported", "not-yet", "none"],
)
def test_a_counter_before_its_first_event(stats, expected):
    """It is 0 if the broker reports other counters, and unknown if it reports none."""
    assert expected == counter_value(stats, "publish")


def test_a_queue_is_found_wherever_it_stands():
    """Other queues come and go before it in the list; a reading without it ends its history."""
    mine, other, third = queue(messages_ready=1), queue("a"), queue("b")
    seen = window((0, [mine]), (10, [other]), (20, [other, mine]), (30, [third, other, mine]), (40, [mine]))

    assert [20, 30, 40] == [it.at.mono - at(0).mono for it in queue_series(seen, "/", "orders")]
    assert () == queue_series(seen, "/", "unknown")


def test_counters_have_the_moments_at_which_they_were_read():
    """Totals of all queues are read more often than the statistics of one."""
    old, new = queue(details_at=at(5)), queue(details_at=at(35))
    seen = window((10, [old]), (20, [replace(old, messages_ready=7)]), (40, [new]))

    assert [5, 35] == [it.at.mono - at(0).mono for it in by_details_time(queue_series(seen, "/", "orders"))]
