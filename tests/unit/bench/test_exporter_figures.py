"""Conclusions of the exporter benchmarks from their measurements."""

import os
from collections import Counter
from pathlib import Path

import pytest

from bench.exporter.goals import Goal, bounds, noise, peer_goals, ratio
from bench.exporter.growth import per_doubling
from bench.exporter.peers import oldest
from bench.exporter.rabbitmq_exporter import go_version
from bench.exporter.restarts import judged
from bench.exporter.scraping import ScrapedPage
from bench.exporter.soak import trend
from bench.usage import Stretch, cpu_seconds, usage

OURS = {"added_cpu": 1.0, "added_cpus": [1.0], "scrape": 0.01, "oldest_totals": 1.1, "peak": 100 * 1024 * 1024}
RABBITMQ_EXPORTER = {"added_cpu": 5.0, "added_cpus": [5.0], "scrape": 0.5}


def page(age, interval=15):
    """Return a page with the age of the totals."""
    lines = [f'ackscope_poll_age_seconds{{family="queues"}} {age}']
    if interval is not None:
        lines.append(f'ackscope_poll_interval_seconds{{family="queues"}} {interval}')
    return ScrapedPage(0.0, 0, "\n".join(lines))


@pytest.mark.parametrize(("seen", "verdict"), [(0.2, "met"), (0.3, "NOT met"), (None, "could not tell")])
def test_a_goal_is_met_missed_or_unknown(seen, verdict):
    """A missing value is not a success."""
    assert Goal("share", seen, 0.25).line().startswith(f"{verdict}: share")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.24, "met"), (0.1, 0.3, "could not tell"), (0.1, None, "could not tell"), (0.3, 0.4, "NOT met")],
)
def test_a_goal_within_the_noise_is_neither_met_nor_missed(low, high, verdict):
    """The value alone would be on one side of the goal."""
    seen = 0.35 if verdict == "NOT met" else 0.2

    assert Goal("share", seen, 0.25, low, high).line().startswith(f"{verdict}: share: {seen} ({low} to ")


def test_noise_is_reported_from_three_stretches_on():
    """With two stretches the estimate would be wrong more often than right."""
    assert (None, 0.0) == (noise([1.0, 2.0]), noise([1.0, 1.0, 1.0]))
    assert noise([0.0, 1.0, 2.0]) == pytest.approx(2 / 3**0.5)


def test_a_quotient_is_as_sure_as_its_parts():
    """It has no bound if the denominator may be 0."""
    assert (0.5, 0.5) == bounds([1.0] * 3, [2.0] * 3)
    assert (None, None) == bounds([1.0], [2.0] * 3)
    assert bounds([1.0] * 3, [0.0, 1.0, 2.0])[1] is None
    assert bounds([1.0] * 3, [-2.0, -2.0, -2.1])[1] is None


def test_the_noise_of_both_parts_is_the_noise_of_the_quotient():
    """Small relative errors add in squares: 1/10 and 1/10 give about 1/7."""
    part, whole = [0.9, 1.0, 1.1], [9.0, 10.0, 11.0]
    each = noise(part)
    low, high = bounds(part, whole)

    assert (low, high) == pytest.approx((0.1 * (1 - each * 2**0.5), 0.1 * (1 + each * 2**0.5)), rel=0.03)
    assert bounds([-1.0, 0.0, 1.0], whole)[0] == 0


def test_the_goals_of_the_peers():
    """A quarter of the broker's time, a fifth of the scrape, two intervals, 200 MB."""
    goals = peer_goals({"ackscope": OURS, "rabbitmq_exporter": RABBITMQ_EXPORTER}, 10_000, 15)

    assert [0.2, 0.02, 1.1, 100.0] == [pytest.approx(goal.seen) for goal in goals]
    assert all(goal.met for goal in goals)


def test_memory_is_judged_up_to_its_size_only():
    """At 50,000 queues no limit was set."""
    assert len(peer_goals({"ackscope": OURS, "rabbitmq_exporter": RABBITMQ_EXPORTER}, 50_000, 15)) == 3


@pytest.mark.parametrize(("part", "whole"), [(None, 1.0), (1.0, None), (1.0, 0.0), (1.0, -0.1)])
def test_there_is_no_share_of_nothing(part, whole):
    """There is none if a value is missing, or if the total is within the noise."""
    assert ratio(part, whole) is None


def test_the_oldest_totals_are_those_just_before_the_next_reading():
    """With readings at 0 s and 20 s, the first was 20 s old when the second came."""
    assert max(oldest([(10.0, page(10)), (25.0, page(5))])) == pytest.approx(20 / 15)


def test_ages_are_counted_in_the_interval_in_force():
    """Totals whose interval the budget stretched to 60 s may be older."""
    assert max(oldest([(50.0, page(45, 60))])) == pytest.approx(0.75)


def test_of_pages_without_an_age_there_is_none():
    """Absent is not zero."""
    assert [] == oldest([(0.0, ScrapedPage(0.0, 0, "up 1"))])


@pytest.mark.parametrize(
    ("small", "large", "steps", "factor"), [(1.0, 8.0, 3, 2.0), (2.0, 2.0, 3, 1.0), (1.0, 0.0, 1, 0)]
)
def test_growth_is_reported_per_doubling(small, large, steps, factor):
    """A factor of 2 per doubling is linear."""
    assert per_doubling(small, large, steps) == pytest.approx(factor)


def test_of_nothing_there_is_no_growth():
    """A missing or zero value has no growth factor."""
    assert (None, None) == (per_doubling(None, 1.0, 1), per_doubling(0.0, 1.0, 1))


def test_a_trend_leaves_the_warm_up_out():
    """A value that rises only in the first fifth counts as flat."""
    seen = trend([(at, 50.0 if at < 20 else 100.0) for at in range(100)])

    assert {"first": 100.0, "last": 100.0, "growth": 0.0, "slope": 0.0} == seen


def test_a_trend_of_an_hour_leaves_twelve_minutes_out():
    """The window of the diagnosis is full by then; a shorter run is judged after its first fifth."""
    hour = trend([(at, 50.0 if at < 720 else 100.0) for at in range(0, 2400, 10)])
    short = trend([(at, 50.0 if at < 720 else 100.0) for at in range(0, 1000, 10)])

    assert (0.0, 1.0) == (hour["slope"], short["growth"])


def test_a_trend_that_rises_is_seen_both_ways():
    """The judged part rises from 120 to 199: 66 % by the fitted line, less between the medians of its thirds."""
    seen = trend([(at, 100.0 + at) for at in range(100)])

    assert seen["slope"] == pytest.approx(79 / 120)
    assert 0.3 < seen["growth"] < seen["slope"]


def test_a_trend_of_too_few_is_none():
    """Absent is not flat."""
    assert {"first": None, "last": None, "growth": None, "slope": None} == trend([(0.0, 1.0), (1.0, 1.0)])


@pytest.mark.parametrize(
    ("said", "version"), [("go version go1.26.8 linux/amd64", (1, 26)), ("go version devel", None), ("", None)]
)
def test_the_version_of_go_is_read(said, version):
    """Or it is not known."""
    assert version == go_version(said)


def test_a_process_is_seen_as_the_kernel_sees_it():
    """A file that is opened counts, and memory has been at least what it is."""
    before = usage(os.getpid())
    with Path(os.devnull).open():
        after = usage(os.getpid())

    assert after.files == before.files + 1
    assert after.peak >= after.rss > 0 < after.threads


def test_processor_time_only_grows():
    """A process that does not exist has no processor time."""
    stretch = Stretch({"self": os.getpid(), "none": None})
    before = cpu_seconds(os.getpid())
    sum(range(200_000))

    assert {"self"} == stretch.per_minute().keys()
    assert cpu_seconds(os.getpid()) >= before > 0


def test_a_notification_that_is_repeated_lost_or_false_is_counted():
    """One finding of each kind, beside one that arrived as it should; one that lasts has no end."""
    events = Counter({
        ("start", "good"): 1, ("resolve", "good"): 1,
        ("start", "twice"): 2, ("resolve", "twice"): 1,
        ("start", "unresolved"): 1,
        ("start", "lasts"): 1, ("resolve", "lasts"): 1,
    })  # fmt: skip

    counts = judged({"good", "twice", "unresolved"}, {"lasts"}, events, ("start", "resolve"))

    assert {"once": 2, "repeated": 1, "lost": 1, "false": 1} == counts


def test_a_receiver_that_was_away_gets_a_summary_of_what_ended():
    """It needs no start of it, and one start of what lasts."""
    events = Counter({("missed", "ended"): 1, ("start", "lasts"): 1})

    assert {"once": 2, "repeated": 0, "lost": 0, "false": 0} == judged(
        {"ended"}, {"lasts"}, events, ("start", "missed")
    )
