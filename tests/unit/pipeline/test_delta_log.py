"""The Delta tables: the same rows as the manifest at every version, whatever happened in between."""

import json
import os
import shutil
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from ackscope.manifest import GRACE_SECONDS, encode, manifest_path, read
from ackscope.tables import BURSTS_1M, QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from pipeline.storage import delta_log
from pipeline.storage.rollups import Rollups
from tests.unit.pipeline.test_rollups import BURSTS_1H, DAY, NINE, coarse, put, rows, stands


def table(root, name="bursts_1m", version=None):
    """The Delta table, at a version."""
    return DeltaTable(str(root / name / "cluster=shop"), version=version)


def shown(root, name="bursts_1m", version=None):
    """Its rows, in order of time, with the columns of the contract."""
    found = table(root, name, version)
    read = found.to_pyarrow_dataset().to_table()
    of = BURSTS_1H if name == BURSTS_1H.name else BURSTS_1M

    assert {"shop"} == set(read["cluster"].to_pylist())
    return read.select(list(of.names)).sort_by(of.time).cast(arrow_schema(of)).combine_chunks()


def actions(root, version, kind):
    """The actions of a version of one kind."""
    path = root / "bursts_1m" / "cluster=shop" / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def test_each_commit_is_a_version(tmp_path):
    """Old versions stay readable, the manifest names the newest, and the transaction is the manifest's number."""
    first = put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    second = put(tmp_path, [NINE], rows(1, 2))

    assert [{"bursts_1m": 0}, {"bursts_1m": 1}] == [first.versions, second.versions]
    assert second == read(tmp_path, "shop")
    assert rows(0, 60).equals(shown(tmp_path, version=0))
    assert rows(1, 2, 60).equals(shown(tmp_path))
    assert 2 == table(tmp_path).transaction_version("ackscope/shop")


def test_a_table_that_did_not_change_keeps_its_version(tmp_path):
    """All tables of one moment are those of one manifest."""
    put(tmp_path, [NINE], rows(0))
    put(tmp_path, [NINE], coarse(BURSTS_1H, 0), BURSTS_1H)
    manifest = put(tmp_path, [NINE], rows(1))

    assert {"bursts_1m": 1, "bursts_1h": 0} == manifest.versions
    assert coarse(BURSTS_1H, 0).equals(shown(tmp_path, "bursts_1h"))


def test_compaction_changes_no_data(tmp_path):
    """Its files are marked, so that readers of changes see none."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    transaction = Rollups(tmp_path).transaction("shop")
    transaction.compact_day(BURSTS_1M, DAY)
    transaction.commit()
    changes = {it["dataChange"] for kind in ("add", "remove") for it in actions(tmp_path, 1, kind)}

    assert {False} == changes
    assert rows(0, 60).equals(shown(tmp_path))

    put(tmp_path, [NINE], rows(1))

    assert {True} == {it["dataChange"] for kind in ("add", "remove") for it in actions(tmp_path, 2, kind)}


def test_a_replayed_commit_is_published_once(tmp_path):
    """Killed between the log and the manifest: the same commit again adds no version."""
    put(tmp_path, [NINE], rows(0))
    before = encode(read(tmp_path, "shop"))
    put(tmp_path, [NINE], rows(1))
    manifest_path(tmp_path, "shop").write_bytes(before)
    manifest = put(tmp_path, [NINE], rows(1))

    assert {"bursts_1m": 1} == manifest.versions
    assert 1 == table(tmp_path).version()

    manifest_path(tmp_path, "shop").write_bytes(before)
    other = put(tmp_path, [NINE], rows(2))

    assert {"bursts_1m": 2} == other.versions
    assert rows(2).equals(shown(tmp_path))


@pytest.mark.parametrize("damage", ["removed", "torn", "foreign"])
def test_a_log_that_is_wrong_is_repaired(tmp_path, damage):
    """By the next commit, whatever happened to it."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    folder = tmp_path / "bursts_1m" / "cluster=shop" / "_delta_log"
    if damage == "removed":
        shutil.rmtree(folder)
    elif damage == "torn":
        (folder / f"{0:020d}.json").write_bytes(b"")
    else:
        table(tmp_path).delete()
    manifest = put(tmp_path, [NINE], rows(1))

    assert rows(1, 60).equals(shown(tmp_path, version=manifest.versions["bursts_1m"]))
    assert rows(1, 60).equals(shown(tmp_path))


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    """The commit counts, without a version; the next one publishes."""
    put(tmp_path, [NINE], rows(0))
    folder = tmp_path / "bursts_1m" / "cluster=shop" / "_delta_log"
    shutil.rmtree(folder)
    folder.write_bytes(b"in the way")
    manifest = put(tmp_path, [NINE], rows(1))

    assert {} == manifest.versions
    assert rows(1).equals(stands(tmp_path))

    folder.unlink()

    assert {"bursts_1m": 0} == put(tmp_path, [NINE], rows(2)).versions
    assert rows(2).equals(shown(tmp_path))


def test_the_switch_removes_the_log(tmp_path):
    """A log that nobody updates would soon name files that are gone."""
    put(tmp_path, [NINE], rows(0))
    transaction = Rollups(tmp_path, delta=False).transaction("shop")
    transaction.replace_hours(BURSTS_1M, [NINE], rows(1))
    manifest = transaction.commit()

    assert {} == manifest.versions
    assert not DeltaTable.is_deltatable(str(tmp_path / "bursts_1m" / "cluster=shop"))
    assert {"bursts_1m": 0} == put(tmp_path, [NINE], rows(2)).versions


def test_a_table_that_is_emptied_is_an_empty_table(tmp_path):
    """Expired rows leave the table, not the last rows that it had."""
    put(tmp_path, [NINE], rows(0))
    manifest = put(tmp_path, [NINE], rows())

    assert {"bursts_1m": 1} == manifest.versions
    assert 0 == table(tmp_path).to_pyarrow_dataset().count_rows()


def test_vacuum_leaves_the_log_and_its_files(tmp_path):
    """After the grace period the newest version is still whole."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    put(tmp_path, [NINE], rows(1))
    for path in (tmp_path / "bursts_1m").rglob("hour=*.parquet"):
        os.utime(path, (path.stat().st_mtime - GRACE_SECONDS - 60,) * 2)
    Rollups(tmp_path).vacuum()

    assert 2 == len(list((tmp_path / "bursts_1m").rglob("hour=*.parquet")))
    assert rows(1, 60).equals(shown(tmp_path))


def test_logs_are_checkpointed(tmp_path, monkeypatch):
    """A reader of a long history reads one file, and a few more."""
    monkeypatch.setitem(delta_log._CONFIGURATION, "delta.checkpointInterval", "5")
    for number in range(7):
        put(tmp_path, [NINE], rows(number))

    assert list((tmp_path / "bursts_1m" / "cluster=shop" / "_delta_log").glob("*.checkpoint.parquet"))
    assert rows(6).equals(shown(tmp_path))


def test_a_column_that_is_new_makes_a_new_log(tmp_path, monkeypatch):
    """An upgrade adds columns; the log then has them, and older files read as null."""
    put(tmp_path, [NINE], rows(0))
    fewer = arrow_schema(BURSTS_1M).remove(len(BURSTS_1M.names) - 1)
    monkeypatch.setattr(delta_log, "arrow_schema", lambda _: fewer)
    put(tmp_path, [NINE], rows(1))

    assert fewer.names == table(tmp_path).to_pyarrow_dataset().schema.names[: len(fewer.names)]

    monkeypatch.undo()
    put(tmp_path, [NINE], rows(2))

    assert rows(2).equals(shown(tmp_path))


def test_every_column_has_bounds(tmp_path):
    """Also text, cut to what a bound may be, and times, rounded outwards; not columns that are always null."""
    long, soon = "q" * 100, datetime(2026, 3, 1, 9, 0, 0, 1500, tzinfo=UTC)
    columns = dict.fromkeys(QUEUES_1M.names)
    schema = arrow_schema(QUEUES_1M)
    moments = [soon, datetime(2026, 3, 1, 9, tzinfo=UTC)]
    made = [
        columns | {"minute": at, "vhost": "/", "queue": name} for at, name in zip(moments, ("a", long), strict=True)
    ]
    path = tmp_path / "file.parquet"
    pq.write_table(_table(made, schema), path)
    found = delta_log.statistics(pq.read_metadata(path), QUEUES_1M)

    assert 2 == found["numRecords"]
    assert ("a", "2026-03-01T09:00:00.000Z") == (found["minValues"]["queue"], found["minValues"]["minute"])
    assert "q" * 32 + "\U0010ffff" == found["maxValues"]["queue"] > long
    assert "2026-03-01T09:00:00.002Z" == found["maxValues"]["minute"]
    assert {"minute", "vhost", "queue"} == found["minValues"].keys() == found["maxValues"].keys()
    assert 2 == found["nullCount"]["messages_ready_last"]


def _table(made, schema):
    return pa.table({it.name: pa.array([row[it.name] for row in made], it.type) for it in schema})
