"""Other engines read what a stream and a compaction publish, while they publish it."""

import argparse

import pytest

from bench.pipeline import delta_live
from bench.pipeline.delta_readers import ENGINES, SPARK
from bench.pipeline.stage import FOLDER

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]


LIGHT = [engine for engine in ENGINES if engine != SPARK]
"""Spark with Delta is an installation of 1.2 GB; the benchmark has it, and the store S3."""


def test_engines_read_whole_states_while_others_commit():
    """Row for row what ackscope reads, at the version of the manifest and at the newest one."""
    words = argparse.Namespace(minutes=1.0, every=2.0, compact_every=5.0, engines=LIGHT, seed=3, store=FOLDER)
    found = delta_live.measure(words)

    assert {engine: [] for engine in LIGHT} == {engine: it["differing"] for engine, it in found["engines"].items()}
    assert not found["stream_ended"], found["said"]
    assert min(found["commits"], *(it["rows"] for it in found["engines"].values())) > 0
