"""A stream that is killed again and again, its Java too, with a reader at work all the while."""

import argparse

import pytest

from bench.pipeline import kills

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.timeout(1500)
def test_kills_lose_and_double_nothing_and_show_nothing_half():
    """Rows are those of one `run` over the same landing, hour by hour; every state that was seen was whole."""
    found = kills.measure(argparse.Namespace(kills=4, minutes=0.0, every=2.0, seed=6))

    assert 4 == sum(found["kills"].values())
    assert [] == found["differing"]
    assert {} == found["seen"]["problems"]
    assert min(found["compared"], found["seen"]["states"], found["rollup_rows"]) > 0
