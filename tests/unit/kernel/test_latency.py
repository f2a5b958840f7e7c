"""The shared latency buckets."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope import latency


def test_edges_grow_from_fifty_microseconds_to_a_minute() -> None:
    """48 buckets have 47 edges; the ends are exact."""
    assert (47, 48) == (len(latency.EDGES), len(latency.COLUMNS))
    assert (5e-05, pytest.approx(60.0)) == (latency.EDGES[0], latency.EDGES[-1])
    assert list(latency.EDGES) == sorted(latency.EDGES)


@given(st.floats(min_value=0, max_value=1e4))
def test_a_duration_lies_within_the_edges_of_its_bucket(seconds: float) -> None:
    """Upper edges are inclusive, lower ones are not."""
    index = latency.bucket(seconds)
    low = -1.0 if index == 0 else latency.EDGES[index - 1]
    high = math.inf if index == latency.BUCKETS - 1 else latency.EDGES[index]

    assert low < seconds <= high


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_quantiles_stay_within_one_bucket_of_the_exact_ones(q: float) -> None:
    """The error is bounded in value: a factor of one bucket's width."""
    values = sorted(random.Random(7).lognormvariate(-6, 1) for _ in range(5000))
    counts = [0] * latency.BUCKETS
    for value in values:
        counts[latency.bucket(value)] += 1
    exact = values[math.ceil(q * len(values)) - 1]
    estimate = latency.quantile(counts, values[-1], q)

    assert estimate is not None
    assert exact / 1.36 <= estimate <= exact * 1.36


def test_no_quantile_exceeds_the_exact_maximum() -> None:
    """A single message: every quantile is at most that message."""
    counts = [0] * latency.BUCKETS
    counts[latency.bucket(0.0011)] = 1

    assert 0.0011 == latency.quantile(counts, 0.0011, 0.99)


def test_nothing_measured_has_no_quantile() -> None:
    """Absent is not zero."""
    assert latency.quantile([0] * latency.BUCKETS, None, 0.5) is None


@given(
    st.lists(st.floats(min_value=latency.EDGES[0], max_value=60.0), min_size=1),
    st.floats(min_value=0.0, max_value=1.0),
)
def test_any_quantile_of_any_durations_is_off_by_less_than_a_bucket(values: list[float], q: float) -> None:
    """Of the duration that has this rank, between 50 microseconds and a minute: a factor of 1.36 at most."""
    counts = [0] * latency.BUCKETS
    for value in values:
        counts[latency.bucket(value)] += 1
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    estimate = latency.quantile(counts, max(values), q)

    assert estimate is not None
    assert exact / 1.36 <= max(estimate, latency.EDGES[0]) <= exact * 1.36
