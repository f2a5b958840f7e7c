"""Comparison of engines: their input, and the report of their runs."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from bench.pipeline.fleet import START, Fleet
from bench.pipeline.queue_work import sums, windows
from bench.pipeline.throughput import _compared, _goals, lines
from bench.pipeline.workers import Run
from bench.pipeline.writing import write_fleet
from bench.tables import WIDTH
from bench.usage import MB


def test_a_window_has_the_files_that_its_minutes_depend_on(tmp_path):
    """The hours before and after it, as far as samples reach; of queues and of polls."""
    write_fleet(tmp_path, Fleet("bench", queues=5, days=1, incidents=0), 4, 60)

    found = windows(tmp_path)

    assert [START + hour * 3600 for hour in range(4)] == [it["start"] for it in found]
    for table in (QUEUE_SAMPLES, POLL_SAMPLES):
        assert [2, 3, 3, 2] == [len(it[table.name]) for it in found]
        assert all(f"/{table.name}/" in path for it in found for path in it[table.name])


def test_sums_pass_over_what_is_not_known(tmp_path):
    """The result has the number of rows, then one sum per column, over all files."""
    reported = {"minute": START, "vhost": "/", "queue": "orders", "samples": 2, "published": 7}
    row = dict.fromkeys(QUEUES_1M.names) | reported
    for name in ("a", "b"):
        pq.write_table(pa.Table.from_pylist([row], arrow_schema(QUEUES_1M)), tmp_path / f"{name}.parquet")

    found = sums([str(path) for path in tmp_path.iterdir()])

    assert (2, 4) == found[:2]
    assert 14 in found
    assert 18 == sum(found[1:])


@pytest.fixture
def runs():
    """Return runs of two engines: one cold and two warm runs each."""

    def of(cpu, *numbers):
        cold, *warm = [Run(cpu * 2, cpu, 900 * MB, sums=(number,)) for number in numbers]
        return {"cold": [cold], "warm": warm}

    return lambda *numbers: {"ackscope": of(30.0, 5, 5, 5), "duckdb": of(10.0, *numbers)}


def test_one_run_that_differs_is_reported(runs):
    """This holds for every engine, warm or cold."""
    assert _compared(runs(5, 5, 5))["same"]
    assert not _compared(runs(5, 5, 6))["same"]
    assert not _compared(runs(4, 5, 5))["same"]


@pytest.fixture
def document(runs):
    """Return a document about queues only."""
    queues = _compared(runs(5, 5, 5)) | {
        "queues": 10_000,
        "hours": 24,
        "landed": {"queue_samples": [9_000_000, 90_000_000]},
        "rows": {"queues_1m": 14_400_000},
        "bytes": {"queues_1m": 150_000_000},
        "wall": 200.0,
        "cpu": 300.0,
        "peak": 2_000_000_000,
    }
    return {"sizes": [], "queues": queues}


def test_queues_have_a_goal_of_their_own(document):
    """The goal compares processor time with the fastest other engine; memory counts too."""
    times, memory = _goals(document)

    assert ("queues, warm: processor time, times the fastest", 3.0, 3.0) == (times.what, times.seen, times.most)
    assert times.met
    assert 2_000_000_000 / MB == memory.seen


def test_without_peers_there_is_nothing_to_compare(document):
    """Ackscope alone has no goal of that kind."""
    del document["queues"]["engines"]["duckdb"]

    assert 1 == len(_goals(document))


def test_the_table_of_queues_fits(document):
    """80 columns at most, with the verdict above it."""
    text = lines(document | {"goals": [goal.as_dict() for goal in _goals(document)]})

    assert "queues_1m alone, warm; results equal" in text
    assert ["ackscope", "60.0", "30.0", "3.0", "900"] in [line.split() for line in text]
    assert all(len(line) <= WIDTH for line in text if "  " in line)
