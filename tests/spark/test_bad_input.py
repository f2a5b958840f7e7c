"""Errors of input or disk are reported in one line, and do not affect valid data."""

import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from ackscope.clock import SystemClock
from ackscope.errors import DataError
from ackscope.manifest import VERSION, manifest_path, read
from ackscope.tables import OUTCOMES_1M, PROBE_MESSAGES, QUEUE_SAMPLES
from pipeline import jobs
from pipeline.hours import first_hour
from tests.spark.landing_files import at, message, sample, write

pytestmark = pytest.mark.spark


def run(root, session, rollups="rollups"):
    """Roll up `root/landing`."""
    return jobs.run(root / "landing", root / rollups, session, SystemClock(), minutes_only=True)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A separate file system with room for a few files; `grow` enlarges it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "none", disk], capture_output=True, check=False)
    assert made.returncode == 0, f"this test mounts a small disk and needs root: {made.stderr.decode()}"
    yield disk
    subprocess.run(["umount", disk], check=True)


def grow(disk):
    """Somebody frees space."""
    subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)


def test_a_full_disk(session, rolled, fingerprint, small_disk, tmp_path):
    """Reported in one line; nothing half written counts, landing is as it was; with space it all comes true."""
    rows = [message(seq, seq * 7, stream=f"stream-{seq % 50}") for seq in range(500)]
    path = write(tmp_path / "landing", PROBE_MESSAGES, rows, "a")

    with pytest.raises(DataError, match=r": cannot be written \(No space left on device\); check its disk and owner"):
        run(tmp_path, session, "disk/rollups")

    assert [] == rolled(small_disk / "rollups", OUTCOMES_1M)
    assert path.exists()

    grow(small_disk)
    run(tmp_path, session, "disk/rollups")

    assert 500 == sum(row["messages"] for row in rolled(small_disk / "rollups", OUTCOMES_1M))


def test_all_that_may_lie_in_a_landing_folder(session, rolled, caplog, tmp_path):
    """Rows of 1970 and 2100, a clock that jumped back, an hour without data, an older schema, a foreign file."""
    landing = tmp_path / "landing"
    jumped = [message(1, 100), message(2, 40), message(3, 101)]
    odd = [message(4, 102, intended_at=at(2.3e9)), message(5, 103, intended_at=at(-1.7e9))]
    first = write(landing, PROBE_MESSAGES, [*jumped, *odd], "a")
    older = write(landing, PROBE_MESSAGES, [message(6, 2 * 3600)], "older")
    pq.write_table(pq.read_table(older).drop_columns(["out_of_order", "delivery", "redelivered"]), older)
    foreign = write(landing, QUEUE_SAMPLES, [sample(0)], "foreign").rename(first.with_name("foreign.parquet"))
    stray = write(landing, PROBE_MESSAGES, [message(7, 0, intended_at=at(2.3e9))], "stray")
    summary = run(tmp_path, session)
    noon = first_hour(date(2026, 3, 1)) + 12
    apart = landing / "_quarantine" / first.parent.relative_to(landing)

    assert [(0, 1), (1, 2), (120, 1)] == [
        ((row["minute"] - at(0)).total_seconds() // 60, row["messages"])
        for row in rolled(tmp_path / "rollups", OUTCOMES_1M)
    ]
    assert [noon, noon + 2] == [it.start for it in read(tmp_path / "rollups", "shop").files_for(OUTCOMES_1M.name)]
    assert (1, 3, 4) == (summary.quarantined, summary.misdated_rows, summary.landing_rows)
    assert [4, 5] == sorted(pq.read_table(apart / "a.rows.parquet")["seq"].to_pylist())
    assert first.exists()
    assert stray.exists()
    logged = [record.msg for record in caplog.records if str(first.parent) in record.msg.get("file", "")]
    assert [
        ("misdated rows ignored, check the clocks", str(first), str(apart / "a.rows.parquet")),
        ("bad file quarantined", str(foreign), "has no column 'intended_at'"),
    ] == [(it["event"], it["file"], it.get("copy", it.get("reason"))) for it in logged]


def test_a_damaged_manifest_and_one_of_another_version(session, rolled, tmp_path):
    """Reported in one line, and left alone: with it goes the history; without it landing is rolled up again."""
    write(tmp_path / "landing", PROBE_MESSAGES, [message(1, 0)], "a")
    path = manifest_path(tmp_path / "rollups", "shop")
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps({"version": VERSION + 1}))

    with pytest.raises(DataError) as newer:
        run(tmp_path, session)

    path.write_bytes(b"{")
    with pytest.raises(DataError) as damaged:
        run(tmp_path, session)

    assert (
        f"{path}: manifest has version {VERSION + 1}, this ackscope reads {VERSION}; use the newer one",
        f"{path}: not a valid manifest; remove it and `ackscope pipeline run` writes a new one",
    ) == (str(newer.value), str(damaged.value))
    assert b"{" == path.read_bytes()

    path.unlink()
    run(tmp_path, session)

    assert [1] == [row["messages"] for row in rolled(tmp_path / "rollups", OUTCOMES_1M)]
