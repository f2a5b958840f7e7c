"""Contenders rotate over three brokers, which cancels differences of machine and brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.exporter import at_once
from bench.exporter.contenders import NOBODY, OURS, RABBITMQ_EXPORTER
from bench.exporter.rotation import compared

TIMES = {NOBODY: 1.0, RABBITMQ_EXPORTER: 2.0, OURS: 1.2}
FIGURES = st.floats(0.5, 2)


def stretches(slow, brokers, disturbed=None):
    """Return values of rotated contenders; `disturbed` maps (stretch, contender) to a factor."""
    return [
        {
            name: times * much * brokers[(place + number) % 3] * (disturbed or {}).get((number, name), 1.0)
            for place, (name, times) in enumerate(TIMES.items())
        }
        for number, much in enumerate(slow)
    ]


@given(st.lists(FIGURES, min_size=3, max_size=7), st.tuples(FIGURES, FIGURES, FIGURES))
def test_neither_slow_stretches_nor_costly_brokers_are_reported_as_ours(slow, brokers):
    """This holds for whole and for incomplete rotations."""
    seen = stretches(slow, brokers)
    reported = at_once.goal(seen)

    assert compared(seen).times == pytest.approx({RABBITMQ_EXPORTER: 2.0, OURS: 1.2})
    assert (0.2, 0.2, 0.2) == pytest.approx((reported.seen, reported.low, reported.high), abs=1e-4)


def test_what_disturbs_one_of_them_is_noise():
    """One stretch with a much higher value adds noise, which shrinks with more stretches."""
    few, many = (at_once.goal(stretches([0.6] * number, (1.0, 1.0, 1.0), {(1, OURS): 1.2})) for number in (3, 9))

    assert few.met is None
    assert few.low < 0.2 < few.seen < few.high
    assert few.high - few.low > many.high - many.low


def test_two_stretches_tell_no_noise():
    """There are as many unknowns as values."""
    reported = at_once.goal(stretches([0.6, 0.7], (1.0, 1.1, 1.2)))

    assert reported.seen == pytest.approx(0.2)
    assert (reported.low, reported.high) == (None, None)
