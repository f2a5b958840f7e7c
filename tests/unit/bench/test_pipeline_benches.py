"""The benchmarks of the pipeline as commands."""

import argparse
from dataclasses import asdict

import pytest

from bench.pipeline import batch
from bench.pipeline.__main__ import BENCHES
from bench.pipeline.scale import CLUSTERS, lines, plan
from bench.tables import WIDTH


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_the_short_form_is_one_that_the_command_takes(bench):
    """The benchmark knows the options that `make bench-pipeline` passes."""
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)

    assert parser.parse_args(list(bench.short))
    assert bench.room == "pipeline"


@pytest.fixture
def seen():
    """Return two hours of one cluster."""
    return {
        "queues": 200,
        "hours": 2,
        "landed": {"queue_samples": [60_000, 480_000], "probe_messages": [115_000, 4_000_000]},
        "rows": {"queues_1m": 24_000},
        "bytes": {"queues_1m": 120_000},
        "cold_cpu": 40.0,
        "cpu": 8.0,
        "peak": 900_000_000,
        "manifest_entry": 200.0,
        "looks": {"first": 1e-4, "again": 1e-5, "bytes_a_day": 300e6},
    }


def test_many_clusters_are_one_times_their_number(seen):
    """Bytes, files and processor time grow with the clusters; the manifest of each does not."""
    one, many = plan(seen, 1), plan(seen, 10_000)

    assert 8.0 * 12 == one.cpu
    assert 4_480_000 * 12 == one.landing
    for name in ("landing", "small", "minutes", "files", "cpu", "stored", "stored_files", "log", "listing"):
        assert getattr(one, name) * 10_000 == pytest.approx(getattr(many, name))
    assert one.manifest == many.manifest


def test_the_tables_fit(seen):
    """Every line of a table is 80 columns at most, whatever the sizes."""
    text = lines(seen | {"plans": [asdict(plan(seen, count)) for count in CLUSTERS]})

    assert all(len(line) <= WIDTH for line in text if "  " in line)


def test_a_batch_of_many_clusters_is_compared_with_one_by_one():
    """Seconds, CPU seconds, and how many times as fast."""
    costs = {"one by one": {"seconds": 40.0, "cpu": 41.0}, "together": {"seconds": 5.0, "cpu": 4.0}}

    text = batch.lines({"queues": 50, "times": 3, "batches": {"30": costs}})

    assert "30                 40.0   41.0          5.0    4.0           8.00" == text[-1]
