"""A stream that is killed again and again, its Java too, with a reader at work all the while."""

import argparse

import pytest

from bench.pipeline import kills
from bench.pipeline.stage import FOLDER

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.timeout(2400)
def test_kills_lose_and_double_nothing_and_show_nothing_half():
    """Rows are those of one `run` over the same landing, hour by hour; every state that was seen was whole.

    No stream ends by itself, and of two that are started by mistake one ends with one line.
    """
    words = argparse.Namespace(
        kills=4, minutes=0.0, every=2.0, seed=6, store=FOLDER, executors=False, twice=1, clusters=2
    )
    found = kills.measure(words)

    assert 4 == sum(found["kills"].values())
    assert [] == found["differing"]
    assert {} == found["seen"]["problems"]
    assert [] == found["ended"]
    assert [True] == [it["lost"] for it in found["losers"]], found["losers"]
    assert min(found["compared"], found["seen"]["states"], found["rollup_rows"]) > 0
