"""Pause of a stream between two batches."""

import pytest

from pipeline.streaming import pause_after


@pytest.mark.parametrize(("busy", "expected"), [(1, 3), (4, 12), (5, 11), (8, 2), (9, 2.25), (40, 10)])
def test_a_rest_is_as_long_as_freshness_allows(busy, expected):
    """A quarter of the time where rows are fresh enough, then less of a rest, and at least a fifth of the time."""
    assert expected == pause_after(busy)
