"""What DuckDB, Polars and pandas make of the same landing files is what ackscope makes."""

import argparse
import random

import pyarrow.parquet as pq
import pytest

from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M
from bench.pipeline import throughput
from bench.pipeline.queue_work import windows
from bench.pipeline.workers import OURS, PEERS, QUEUES, working
from bench.tables import WIDTH
from tests.spark import golden_samples
from tests.spark.landing_files import random_polls, random_samples, write

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.timeout(900)
def test_all_engines_make_the_same(tmp_path):
    """Of messages and of queues, as the benchmark itself compares them."""
    engines = ",".join((OURS, *PEERS))
    request = argparse.Namespace(messages="0.02", warm=1, engines=engines, queues=40, hours=3, folder=tmp_path)

    found = throughput.measure(request)

    (messages,), queues = found["sizes"], found["queues"]
    assert [*engines.split(",")] == [*messages["engines"]] == [*queues["engines"]]
    assert messages["same"]
    assert queues["same"]
    assert queues["rows"]["queues_1m"] == queues["sums"][0] > 0
    assert all(len(line) <= WIDTH for line in throughput.lines(found) if "  " in line)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_follows_what_samples_mean(name, tmp_path):
    """Late counters, resets, deleted queues, whole polls, duplicate rows: row by row."""
    dice = random.Random(3)
    samples, polls = random_samples(dice, 8, 60, 9000), random_polls(dice, 60, 9000)
    for table, rows in ((QUEUE_SAMPLES, samples), (POLL_SAMPLES, polls)):
        middle = len(rows) // 2
        for part, some in {"a": rows[:middle], "b": rows[middle:], "copies": dice.sample(rows, 200)}.items():
            write(tmp_path / "landing", table, some, part)
    request = {"windows": windows(tmp_path / "landing"), "to": str(tmp_path / "to")}

    with working(name, QUEUES) as worker:
        files = worker.ask(request).answer["files"][QUEUES_1M.name]

    found = [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
    expected = golden_samples.queues_1m(samples, polls)
    assert 3 == len(files)
    assert sorted(expected, key=_key) == found


def _key(row):
    return tuple(row[name] for name in QUEUES_1M.key)
