from random import Random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from ackscope.records import Quantiles
from probes.recent_values import RecentCounts, RecentValues


def test_an_empty_window_has_no_quantiles():
    """Absent is not zero."""
    assert Quantiles() == RecentValues().summary(0.0)


@given(st.lists(st.floats(1e-5, 3000), min_size=1, max_size=200))
def test_quantiles_are_within_one_percent_and_the_maximum_is_exact(values):
    """Nearest-rank quantiles of all values, whatever they are."""
    recent = RecentValues(span=None)
    for value in values:
        recent.record(value, 0.0)
    ordered = sorted(values)

    summary = recent.summary(0.0)

    assert summary.count == len(values)
    assert summary.max == ordered[-1]
    for quantile, share in ((summary.p50, 0.5), (summary.p90, 0.9), (summary.p99, 0.99)):
        near = [ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) + step))] for step in (-1, 0)]
        assert min(near) * 0.99 - 1e-6 <= quantile <= max(near) * 1.01 + 1e-6


def test_the_window_forgets():
    """A value older than the window is gone; a younger one stays."""
    recent = RecentValues(span=60.0, slices=6)
    recent.record(5.0, 0.0)
    recent.record(1.0, 30.0)

    assert recent.summary(31.0).max == 5.0
    assert recent.summary(70.0).max == 1.0
    assert recent.summary(120.0).count == 0


def test_the_whole_run_forgets_nothing():
    """A one-shot run reports all of it."""
    recent = RecentValues(span=None)
    recent.record(5.0, 0.0)
    recent.record(1.0, 1e6)

    assert recent.summary(1e6).count == 2


def test_buckets_hold_every_value_once():
    """The histogram of the report counts each message in one bucket."""
    recent = RecentValues(span=None)
    for value in (0.001, 0.0015, 0.02, 5.0):
        recent.record(value, 0.0)

    assert [1, 1, 1, 1] == recent.buckets(0.0, (0.001, 0.002, 0.1))


def test_a_value_beyond_the_range_is_kept():
    """An extreme latency is clamped in the quantiles but exact in the maximum; it is not dropped."""
    recent = RecentValues(span=None)
    recent.record(1e5, 0.0)

    assert recent.summary(0.0).count == 1
    assert recent.summary(0.0).max == 1e5


def test_plain_numbers_have_their_own_unit():
    """Messages a burst are not durations."""
    recent = RecentValues(unit=1.0, span=None)
    for value in (1, 1, 40):
        recent.record(value, 0.0)

    assert recent.summary(0.0).p50 == 1
    assert recent.summary(0.0).max == 40


def test_counts_forget_as_the_figures_do():
    """Outcomes of the recent window."""
    counts = RecentCounts(span=60.0)
    counts.add("acked", 0.0)
    counts.add("nacked", 50.0)

    assert {"acked": 1, "nacked": 1} == counts.total(55.0)
    assert {"nacked": 1} == counts.total(80.0)
    assert {} == counts.total(500.0)


@pytest.mark.parametrize("span", [None, 60.0])
def test_counts_add_up(span):
    """Each call counts one."""
    counts = RecentCounts(span=span)
    for _ in range(5):
        counts.add("acked", 1.0)

    assert counts.total(2.0)["acked"] == 5


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101, 999])
def test_quantiles_are_those_of_one_histogram_of_all_values(count):
    """Over slices that close one after the other, summed up again and again while they fill."""
    recent, random = RecentValues(span=60.0), Random(count)
    whole = HdrHistogram(1, 3_600_000_000, 2)
    for index in range(count):
        value = random.expovariate(1000)
        recent.record(value, 50.0 * index / count)
        whole.record_value(int(value / 1e-6 + 0.5))
        reported = recent.summary(50.0 * index / count)
    expected = whole.get_percentile_to_value_dict([50, 90, 99])

    assert count == reported.count
    for percent, found in ((50, reported.p50), (90, reported.p90), (99, reported.p99)):
        assert found == pytest.approx(min(expected[percent] * 1e-6, reported.max))


def test_a_summary_may_be_asked_for_that_is_a_little_old():
    """Within the allowed age the last summary is returned again; without it, the summary is always new."""
    recent = RecentValues(span=None)
    recent.record(1.0, 0.0)
    first = recent.summary(0.0)
    recent.record(2.0, 0.1)

    assert first == recent.summary(0.2, age=0.5)
    assert 2 == recent.summary(0.2).count
