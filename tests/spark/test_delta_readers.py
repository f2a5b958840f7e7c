"""What other engines read from the published tables is what ackscope reads."""

import json
import subprocess

import pyarrow as pa
import pytest

from ackscope.manifest import read
from ackscope.object_path import ObjectPath
from ackscope.tables import BURSTS_1M
from bench.pipeline.delta_live import own_rows, reader_command
from bench.pipeline.delta_readers import ENGINES, SPARK
from pipeline.storage.delta_log import table_address, table_folder, table_options
from pipeline.storage.rollups import Rollups
from tests.buckets import BASE, environment, object_server
from tests.unit.pipeline.test_rollups import BURSTS_1H, DAY, NINE, coarse, put, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

LIGHT = [engine for engine in ENGINES if engine != SPARK]
"""Spark with Delta is an installation of 1.2 GB; the benchmark `delta_live` has it."""


def with_text(*names):
    """Rows of an hour each, with these streams: the only difference between files is text."""
    found = rows(*(60 * number for number in range(len(names))))
    place = found.column_names.index("stream")
    return found.set_column(place, found.schema.field(place), pa.array(names))


def ours(root, table, where=None):
    """What the manifest lists, or those rows of it whose text is in a range."""
    columns, *found = own_rows(root, read(root, "shop"), table.name)
    if where is not None:
        found = [row for row in found if where[1] <= row[columns.index(where[0])] <= where[2]]
    return [columns, *found]


@pytest.mark.parametrize("engine", LIGHT)
def test_an_engine_reads_what_ackscope_reads(engine, tmp_path):
    """Row for row: all of a table, parts of it by text, an old version, and after a compaction."""
    put(tmp_path, [NINE, NINE + 1, NINE + 2], with_text("alpha", "omega" * 20, "Größe"))
    old = ours(tmp_path, BURSTS_1M)
    put(tmp_path, [NINE], with_text("beta"))
    put(tmp_path, [NINE], coarse(BURSTS_1H, 0), BURSTS_1H)
    ranges = [["stream", "b", "c"], ["stream", "omega", "p"], ["stream", "G", "H"], ["stream", "x", "z"]]
    before = [ours(tmp_path, BURSTS_1M, where) for where in (None, *ranges)]
    requests = [
        *({"folder": str(tmp_path / "bursts_1m/cluster=shop"), "version": None, "where": it} for it in (None, *ranges)),
        {"folder": str(tmp_path / "bursts_1m/cluster=shop"), "version": 0, "where": None},
        {"folder": str(tmp_path / "bursts_1h/cluster=shop"), "version": None, "where": None},
    ]
    answers = _asked(engine, requests)

    assert [4, 2, 2, 2, 1] == [len(it) for it in before]
    assert before == answers[:5]
    assert [old, ours(tmp_path, BURSTS_1H)] == answers[5:]

    transaction = Rollups(tmp_path).transaction("shop")
    transaction.compact_day(BURSTS_1M, DAY)
    transaction.commit()

    assert before == _asked(engine, requests[:5])


@pytest.mark.parametrize("engine", LIGHT)
def test_an_engine_reads_a_bucket(engine):
    """The same rows as ackscope, with the options that it uses itself."""
    with object_server() as values, environment(values):
        root = ObjectPath(BASE, "rollups")
        put(root, [NINE, NINE + 1], with_text("alpha", "Größe"))
        put(root, [NINE], with_text("beta"))
        folder = table_folder(root, BURSTS_1M.name, "shop")
        request = {"folder": table_address(folder), "version": None, "where": None, "options": table_options(folder)}

        assert [ours(root, BURSTS_1M)] == _asked(engine, [request])


def _asked(engine, requests):
    words = reader_command(engine)
    lines = "".join(json.dumps(it) + "\n" for it in requests)
    done = subprocess.run(words, input=lines, capture_output=True, text=True, check=False, timeout=300)

    assert (0, "") == (done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
