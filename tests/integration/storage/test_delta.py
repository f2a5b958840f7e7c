"""Delta tables in a bucket: other readers see the rows of the manifest, whoever wrote last."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ackscope import arrow_files, object_path, storage_options
from ackscope.manifest import read
from ackscope.tables import BURSTS_1M
from pipeline.storage import delta_log
from pipeline.storage.rollups import Rollups
from pipeline.storage.store import LostCommitError
from tests.buckets import azurite_ignores_offsets
from tests.unit.pipeline.test_rollups import DAY, NINE, put, rows

pytestmark = pytest.mark.integration


def opened(root, version=None):
    """The table as a reader opens it."""
    folder = delta_log.table_folder(root, BURSTS_1M.name, "shop")
    options = delta_log.table_options(folder)
    return DeltaTable(delta_log.table_address(folder), version=version, storage_options=options)


def shown(root, version=None):
    """Its rows, in order of time."""
    found = opened(root, version).to_pyarrow_dataset().to_table()
    return found.select(list(BURSTS_1M.names)).sort_by(BURSTS_1M.time).to_pylist()


def counted(root):
    """The rows that the manifest lists."""
    tables = [arrow_files.parquet_file(path).read() for path in read(root, "shop").paths(root, BURSTS_1M.name)]
    return pa.concat_tables(tables).sort_by(BURSTS_1M.time).to_pylist()


def actions(root, version, kind):
    """The actions of a version of one kind."""
    path = delta_log.table_folder(root, BURSTS_1M.name, "shop") / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line[kind] for line in lines if kind in line]


@azurite_ignores_offsets
def test_each_commit_is_a_version(bucket):
    """With the number of the manifest; old versions stay, a compaction changes no data, the vacuum leaves the log."""
    bucket = bucket / "a b"
    first = put(bucket, [NINE, NINE + 1], rows(0, 60))
    before = counted(bucket)
    second = put(bucket, [NINE], rows(1, 2))

    assert [{"bursts_1m": 0}, {"bursts_1m": 1}] == [first.versions, second.versions]
    assert before == shown(bucket, 0)
    assert counted(bucket) == shown(bucket)
    assert second.number == opened(bucket).transaction_version("ackscope/shop")

    transaction = Rollups(bucket).transaction("shop")
    transaction.compact_day(BURSTS_1M, DAY)
    transaction.commit()
    Rollups(bucket).vacuum()

    assert {False} == {it["dataChange"] for kind in ("add", "remove") for it in actions(bucket, 2, kind)}
    assert counted(bucket) == shown(bucket)


def test_a_writer_that_lost_publishes_nothing(bucket):
    """The manifest is checked before the log is written."""
    put(bucket, [NINE], rows(0))
    slow = Rollups(bucket).transaction("shop")
    slow.replace_hours(BURSTS_1M, [NINE], rows(7))
    put(bucket, [NINE], rows(1))

    with pytest.raises(LostCommitError, match="another writer committed meanwhile"):
        slow.commit()

    assert 1 == opened(bucket).version()
    assert counted(bucket) == shown(bucket)


@pytest.mark.parametrize("damage", ["removed", "torn", "ahead"])
def test_a_log_that_is_wrong_is_repaired(bucket, damage, monkeypatch):
    """By the next commit: also one that is ahead of the manifest, after a kill in between."""
    put(bucket, [NINE, NINE + 1], rows(0, 60))
    log = delta_log.table_folder(bucket, BURSTS_1M.name, "shop") / "_delta_log"
    if damage == "removed":
        for it in log.below():
            it.unlink()
    elif damage == "torn":
        (log / f"{0:020d}.json").write_bytes(b"")
    else:
        transaction = Rollups(bucket).transaction("shop")
        transaction.replace_hours(BURSTS_1M, [NINE], rows(5))
        monkeypatch.setattr("pipeline.storage.store.ObjectStore.commit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            transaction.commit()
        monkeypatch.undo()
    manifest = put(bucket, [NINE], rows(1))

    assert counted(bucket) == shown(bucket) == shown(bucket, manifest.versions["bursts_1m"])


def test_the_switch_removes_the_log(bucket):
    """A log that nobody updates would soon name files that are gone."""
    put(bucket, [NINE], rows(0))
    transaction = Rollups(bucket, delta=False).transaction("shop")
    transaction.replace_hours(BURSTS_1M, [NINE], rows(1))

    assert {} == transaction.commit().versions
    assert [] == list((delta_log.table_folder(bucket, BURSTS_1M.name, "shop") / "_delta_log").below())


@azurite_ignores_offsets
def test_logs_are_checkpointed(bucket, monkeypatch):
    """A reader of a long history reads one object, and a few more."""
    monkeypatch.setitem(delta_log._CONFIGURATION, "delta.checkpointInterval", "3")
    for number in range(5):
        put(bucket, [NINE], rows(number))
    log = delta_log.table_folder(bucket, BURSTS_1M.name, "shop") / "_delta_log"

    assert [it for it in log.iterdir() if it.name.endswith(".checkpoint.parquet")]
    assert counted(bucket) == shown(bucket)


def test_credentials_from_the_file(bucket, server, tmp_path, monkeypatch):
    """No environment at all: endpoint and keys come from the file that `ACKSCOPE_STORAGE_FILE` names."""
    file = tmp_path / "storage"
    file.write_text("".join(f"{name.lower()} = {value}\n" for name, value in server.items()))
    for name in server:
        monkeypatch.delenv(name)
    monkeypatch.setenv(storage_options.OPTIONS_FILE, str(file))
    monkeypatch.setattr(object_path, "_stores", {})

    assert {"bursts_1m": 0} == put(bucket, [NINE], rows(0)).versions
    assert counted(bucket) == shown(bucket)
