"""Each measured stretch contains a whole number of the broker's periodic cleanings."""

import math

from hypothesis import given
from hypothesis import strategies as st

from bench.exporter.cleaning import CLEANING, until_between

AGES = st.floats(0, 1e6)


@given(AGES, st.integers(1, 10))
def test_a_stretch_that_begins_then_holds_as_many_cleanings_as_it_is_long(age, times):
    """No cleaning is near the ends of a stretch."""
    begins = age + until_between(age)
    ends = begins + times * CLEANING

    assert times == math.floor(ends / CLEANING) - math.floor(begins / CLEANING)
    assert math.isclose(CLEANING / 2, begins % CLEANING, abs_tol=1e-3)


@given(AGES)
def test_the_wait_is_no_longer_than_from_one_to_the_next(age):
    """A cleaning that is over causes no wait."""
    assert 0 <= until_between(age) <= CLEANING


@given(st.lists(AGES, min_size=1, max_size=4))
def test_of_several_brokers_no_cleaning_is_near(ages):
    """In the middle of the longest time without one: a part of the whole for each, or more."""
    wait = until_between(*ages)
    from_one = [(age + wait) % CLEANING for age in ages]

    assert 0 <= wait <= CLEANING
    assert min(min(after, CLEANING - after) for after in from_one) >= CLEANING / (2 * len(ages)) - 1e-3
