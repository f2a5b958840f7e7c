"""`compact` with Spark: the rows stay, the files become few, and the stream does not take them for new."""

import itertools
import os
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from ackscope.clock import SystemClock
from ackscope.tables import LANDING, PROBE_MESSAGES, PROBE_STEPS
from pipeline import jobs
from pipeline.compact import Compactor
from pipeline.hours import first_hour
from pipeline.storage import compaction
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import advance_watermark
from tests.spark.landing_files import at, message, write, write_random

pytestmark = pytest.mark.spark


def ingested(root):
    """As after a `run`: all that is there is rolled up."""
    advance_watermark(root / "rollups", jobs.generation(), 1e11)


def compact(root, session, **options):
    """Put together what there is."""
    compactor = Compactor(root / "landing", root / "rollups", session, SystemClock())
    return compactor.run(**options)


def rows(root):
    """All rows that count, each as often as it is there, by table."""
    found = {}
    landing = Landing(root / "landing")
    for partition in landing.partitions():
        held = found.setdefault(partition.table.name, Counter())
        for path in landing.files(partition):
            for row in pq.ParquetFile(path).read().to_pylist():
                held[repr(sorted(row.items()))] += 1
    return found


def files(root):
    """Landing files by table."""
    return Counter(path.relative_to(root / "landing").parts[0] for path in (root / "landing").rglob("*.parquet"))


def test_rows_stay_and_files_become_few(session, tmp_path):
    """One file per table, sorted by time, with the same statistics; a dry run predicts it."""
    for seed in range(4):
        write_random(tmp_path / "landing", seed, first=seed * 300, span=300)
    ingested(tmp_path)
    before, tables = rows(tmp_path), len(files(tmp_path))
    planned = compact(tmp_path, session, dry_run=True)

    assert set(files(tmp_path).values()) == {4}

    summary = compact(tmp_path, session)

    assert before == rows(tmp_path)
    assert dict.fromkeys(files(tmp_path), 1) == files(tmp_path)
    assert (tables, 4 * tables, tables) == (summary.folders, summary.files_before, summary.files_after)
    assert (planned.folders, planned.files_before, planned.files_after, planned.rows) == (
        summary.folders,
        summary.files_before,
        summary.files_after,
        summary.rows,
    )
    assert 0 < summary.bytes_after < summary.bytes_before
    for path in (tmp_path / "landing").rglob("*.parquet"):
        table = LANDING[path.relative_to(tmp_path / "landing").parts[0]]
        times = pq.read_table(path)[table.time].to_pylist()

        assert times == sorted(times)

    assert 0 == compact(tmp_path, session).folders


def test_large_folders_become_several_files(session, tmp_path, monkeypatch):
    """One after the other in time, so that a reader of some hours opens some of them."""
    for seed in range(3):
        write(tmp_path / "landing", PROBE_STEPS, write_random(tmp_path / "other", seed)[PROBE_STEPS], f"x{seed}")
    ingested(tmp_path)
    before = rows(tmp_path)
    monkeypatch.setattr(compaction, "_SINGLE_FILE_BYTES", 1000)
    monkeypatch.setattr(compaction, "_TARGET_BYTES", 8000)
    summary = compact(tmp_path, session)
    spans = sorted(
        (min(times), max(times))
        for path in (tmp_path / "landing").rglob("*.parquet")
        if (times := pq.read_table(path)["at"].to_pylist())
    )

    assert before == rows(tmp_path)
    assert 1 < summary.files_after == len(spans)
    assert all(early[1] <= late[0] for early, late in itertools.pairwise(spans))


def test_odd_rows_and_damaged_files(session, tmp_path):
    """Misdated rows are not copied, an unknown column is null, a damaged file is quarantined at first."""
    landing = tmp_path / "landing"
    good = write(landing, PROBE_MESSAGES, [message(1, 0), message(2, 1, intended_at=at(4e9))], "a")
    older = pq.read_table(write(landing, PROBE_MESSAGES, [message(3, 2)], "b")).drop_columns(["out_of_order"])
    pq.write_table(older, good.with_name("b.parquet"))
    bad = write(landing, PROBE_MESSAGES, [message(seq, seq / 100) for seq in range(9, 5000)], "bad")
    data = bytearray(bad.read_bytes())
    data[4 : len(data) // 3] = b"\xff" * (len(data) // 3 - 4)
    bad.write_bytes(data)
    ingested(tmp_path)
    first, second = compact(tmp_path, session), compact(tmp_path, session)
    (left,) = good.parent.glob("*.parquet")

    assert (1, 0) == (first.folders, second.folders)
    assert [1, 3] == pq.read_table(left)["seq"].to_pylist()
    assert ["a.rows.parquet", "bad.parquet"] == sorted(
        path.name for path in (landing / "_quarantine").rglob("*.parquet")
    )


def test_days_of_rollups_become_one_file(session, fingerprint, tmp_path):
    """The same rows hour by hour; and compacted landing gives the same rollups in another folder."""
    for seed in range(2):
        write_random(tmp_path / "landing", seed, first=seed * 1800, span=3600)
    for name in files(tmp_path).keys() - {"queue_samples", "poll_samples", "probe_steps"}:
        shutil.rmtree(tmp_path / "landing" / name)
    jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)
    before, noon = fingerprint(tmp_path / "rollups"), first_hour(at(0).date()) + 12
    ingested(tmp_path)
    summary = compact(tmp_path, session)
    manifest = Rollups(tmp_path / "rollups").manifest("shop")

    assert before == fingerprint(tmp_path / "rollups")
    assert [(noon - 12, noon + 12)] == [(it.start, it.end) for it in manifest.files_for("queues_1m")]
    assert 0 < summary.rollup_days
    assert 0 < summary.folders

    jobs.run(tmp_path / "landing", tmp_path / "again", session, SystemClock(), minutes_only=True)

    assert before == fingerprint(tmp_path / "again")


def test_a_full_disk_changes_nothing(session, tmp_path, monkeypatch):
    """Reported in one line; the files stay as they are, and nothing half written is left."""
    from ackscope.errors import DataError

    for name in ("a", "b"):
        write(tmp_path / "landing", PROBE_MESSAGES, [message(ord(name), 0)], name)
    ingested(tmp_path)
    before = rows(tmp_path)

    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"date=2026-03-01: cannot be written \(No space left on device\); check"):
            compact(tmp_path, session)

    assert before == rows(tmp_path)
    assert [] == [path.name for path in (tmp_path / "landing").rglob(".*")]
