"""Three brokers at once, in turns: what a contender adds, whatever the machine and the brokers differ by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.exporter import at_once
from bench.exporter.contenders import ENDED, NOBODY, OURS
from bench.exporter.rotation import added

ADDED = {NOBODY: 0.0, ENDED: 0.5, OURS: 0.1}
FIGURES = st.floats(0, 2)


def stretches(slow, brokers, disturbed=None):
    """Figures of contenders that were turned round; `disturbed`: (stretch, contender) -> how much more."""
    return [
        {
            name: more + much + brokers[(place + number) % 3] + (disturbed or {}).get((number, name), 0.0)
            for place, (name, more) in enumerate(ADDED.items())
        }
        for number, much in enumerate(slow)
    ]


@given(st.lists(FIGURES, min_size=3, max_size=7), st.tuples(FIGURES, FIGURES, FIGURES))
def test_neither_slow_stretches_nor_dear_brokers_are_added(slow, brokers):
    """Of whole rotations and of others."""
    seen = stretches(slow, brokers)
    told = at_once.goal(seen)

    assert added(seen).means == pytest.approx({ENDED: 0.5, OURS: 0.1}, abs=1e-6)
    assert (0.2, 0.2, 0.2) == pytest.approx((told.seen, told.low, told.high), abs=1e-4)


def test_what_disturbs_one_of_them_is_noise():
    """A stretch in which ours took much more leaves a doubt, and the more stretches, the less of it."""
    few, many = (at_once.goal(stretches([0.6] * number, (0.0, 0.0, 0.0), {(1, OURS): 0.1})) for number in (3, 9))

    assert few.met is None
    assert few.low < 0.2 < few.seen < few.high
    assert few.high - few.low > many.high - many.low


def test_two_stretches_tell_no_noise():
    """As many figures as there is to find out."""
    told = at_once.goal(stretches([0.6, 0.7], (0.0, 0.1, 0.2)))

    assert told.seen == pytest.approx(0.2)
    assert (told.low, told.high) == (None, None)
