"""Object storage as a place of files, manifests and leases, on a real server."""

import io
import os
import signal
import subprocess
import sys
import threading
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope import arrow_files, manifest
from ackscope.clock import SystemClock
from ackscope.errors import DataError
from ackscope.manifest import GRACE_SECONDS, DataFile, Manifest
from ackscope.object_path import ConflictError, ObjectPath, ObjectStorageError
from ackscope.tables import QUEUES_1M
from pipeline.storage import lease as lease_module
from pipeline.storage.expired import first_whole_hours, raise_floor
from pipeline.storage.lease import lease
from pipeline.storage.rollups import Rollups
from tests.buckets import BASE, ENDPOINT, KEY

pytestmark = pytest.mark.integration


def test_names_with_percent_are_kept(bucket):
    """Clusters have percent-encoded names, which no layer may encode again."""
    path = bucket / "t" / "cluster=a%2Fb" / "x.json"
    path.write_bytes(b"1")

    assert [path] == list(path.parent.iterdir())
    assert [path] == list(bucket.glob("t/cluster=*/*.json"))
    assert [path] == list(bucket.below())
    assert b"1" == path.read_bytes()


def test_a_version_is_written_once(bucket):
    """Whoever writes second with the same version loses, and nothing is changed."""
    path = bucket / "one"
    first = path.write_version(b"1")
    second = path.write_version(b"2", first)

    with pytest.raises(ConflictError):
        path.write_version(b"3", first)
    with pytest.raises(ConflictError):
        path.write_version(b"3")
    # The repetition of a request whose response was lost is no conflict.
    assert second == path.write_version(b"2", first)
    assert (b"2", second) == path.read_version()


def test_parquet_is_read_whole_or_in_ranges(bucket, monkeypatch):
    """Footer, rows and datasets are the same for small and for large objects."""
    rows = pa.table({"a": range(100_000), "b": [str(number) for number in range(100_000)]})
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, row_group_size=10_000)
    path = bucket / "x.parquet"
    path.write_bytes(buffer.getvalue())

    for limit in (2**30, 1000):
        monkeypatch.setattr("ackscope.object_path._WHOLE_BYTES", limit)
        assert 100_000 == arrow_files.footer(path).num_rows
        assert rows.equals(arrow_files.parquet_file(path).read())
        found = arrow_files.dataset([path], rows.schema).to_table(columns=["a"])
        assert rows.select(["a"]).equals(found)


def test_errors_are_one_line_without_credentials(server, monkeypatch):
    """A bucket that is not there, and a server that is not."""
    with pytest.raises(ObjectStorageError, match="there is no bucket") as missing:
        ObjectPath(BASE.replace("history", "nowhere"), "x").read_bytes()
    monkeypatch.setattr("ackscope.object_path._RETRY_SECONDS", 0.1)
    monkeypatch.setattr("ackscope.object_path._stores", {})
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    with pytest.raises(ObjectStorageError) as away:
        ObjectPath(BASE, "x").read_bytes()
    for error in (missing, away):
        assert "\n" not in str(error.value)
        assert server[KEY] not in str(error.value)


def _commit(rollups: Rollups, name: str) -> Manifest:
    transaction = rollups.transaction("shop")
    path = f"{QUEUES_1M.name}/cluster=shop/date=2026-03-01/hour=00.{name:0>16}.parquet"
    transaction.store.write(path, lambda file: file.write(b"rows"))
    transaction._tables[QUEUES_1M.name] = [DataFile(path, 490_000, 490_001, 1, {"490000": name})]
    return transaction.commit()


def test_a_writer_loses_if_another_one_committed(bucket):
    """Two transactions from the same manifest: the second is refused with one line, and the first one counts."""
    rollups = Rollups(bucket)
    slow = rollups.transaction("shop")
    first = _commit(rollups, "1")
    slow._tables[QUEUES_1M.name] = [DataFile("other", 490_000, 490_001, 1)]

    with pytest.raises(DataError, match="another writer committed meanwhile") as error:
        slow.commit()

    assert "\n" not in str(error.value)
    assert first.tables == manifest.read(bucket, "shop").tables


def test_replaced_files_stay_for_their_grace(bucket):
    """The manifest remembers when a file was replaced; the vacuum removes it later, and commits first."""
    first, second = _commit(Rollups(bucket), "1"), _commit(Rollups(bucket), "2")
    old = first.tables[QUEUES_1M.name][0].path
    assert [old] == list(second.replaced)

    Rollups(bucket).vacuum()
    assert (bucket / old).exists()

    class Later(SystemClock):
        def now(self):
            now = super().now()
            return type(now)(now.wall + GRACE_SECONDS + 1, now.mono)

    Rollups(bucket, Later()).vacuum()

    after = manifest.read(bucket, "shop")
    assert not (bucket / old).exists()
    assert (second.number + 1, second.tables, {}) == (after.number, after.tables, after.replaced)


def test_a_writer_that_slept_through_a_vacuum_loses(bucket, monkeypatch):
    """Its files may be gone, so its manifest must not count."""
    rollups = Rollups(bucket)
    _commit(rollups, "1")
    slow = rollups.transaction("shop")
    orphan = f"{QUEUES_1M.name}/cluster=shop/date=2026-03-01/hour=00.{'f' * 16}.parquet"
    slow.store.write(orphan, lambda file: file.write(b"rows"))
    slow._tables[QUEUES_1M.name] = [DataFile(orphan, 490_000, 490_001, 1)]
    monkeypatch.setattr("pipeline.storage.rollups._ORPHAN_SECONDS", -60.0)

    Rollups(bucket).vacuum()

    assert not (bucket / orphan).exists()
    with pytest.raises(DataError, match="another writer"):
        slow.commit()


def test_one_of_many_holds_a_lease(bucket):
    """Threads that each hold it for a moment never hold it together."""
    inside, most = [], []

    def work() -> None:
        with lease(bucket / "l.json", lambda: True):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()

    assert [1, 1, 1, 1] == most


def test_a_lease_of_a_killed_process_is_free_at_once(bucket, monkeypatch):
    """The kernel knows that its holder ended; a holder elsewhere would have to be waited for."""
    code = (
        "import sys, time; from ackscope.object_path import place; from pipeline.storage.lease import lease\n"
        "with lease(place(sys.argv[1]), lambda: True): print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(bucket / "l.json")], stdout=subprocess.PIPE)
    try:
        assert b"held\n" == holder.stdout.readline()
        with lease(bucket / "l.json", lambda: True, wait=False) as taken:
            assert not taken
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with lease(bucket / "l.json", lambda: True, wait=False) as taken:
        assert taken
    monkeypatch.setattr(lease_module, "_kernel", lambda: "")
    held = lease_module._Lease(bucket / "l2.json")
    assert held.take()
    assert not lease_module._Lease(bucket / "l2.json").take()


def test_a_lease_that_could_not_be_released_is_free_for_its_own_process(bucket, monkeypatch):
    """The bucket was away at that moment; nobody else is waited for."""
    with monkeypatch.context() as patched, lease(bucket / "l.json", lambda: True):
        assert not lease_module._is_dead(lease_module._document((bucket / "l.json").read_bytes()))
        patched.setattr(ObjectPath, "write_version", Mock(side_effect=ObjectStorageError("l.json", "away")))
    with lease(bucket / "l.json", lambda: True, wait=False) as taken:
        assert taken


def test_the_floor_of_a_cluster_never_goes_back(bucket):
    """Jobs of several clusters write the same object."""
    raise_floor(bucket, "shop", 10)
    raise_floor(bucket, "bank", 7)
    raise_floor(bucket, "shop", 5)

    assert {"bank": 7, "shop": 10} == first_whole_hours(bucket)
