import fcntl
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.errors import DataError
from ackscope.manifest import GRACE_SECONDS, manifest_path, read
from ackscope.tables import BURSTS_1M, DAYS, HOURS, ROLLUPS
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import first_hour
from pipeline.stop import StoppedError
from pipeline.storage.rollups import Rollups

DAY = date(2026, 3, 1)
NINE = first_hour(DAY) + 9
BURSTS_1H = HOURS[BURSTS_1M.name]
BURSTS_1D = DAYS[BURSTS_1M.name]


def rows(*minutes, bursts=1):
    """One row a minute after nine o'clock."""
    text = dict.fromkeys(("probe", "stream", "queue_type", "vhost", "node"), "x")
    counts = dict.fromkeys(("bursts", "frames", "multiple_frames", "messages", "messages_max", "interval_count"), 1)
    return pa.Table.from_pylist(
        [
            text
            | counts
            | {
                "minute": datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(minutes=minute),
                "interval_sum": 0.0,
                "interval_max": None,
                "bursts": bursts,
            }
            for minute in minutes
        ],
        schema=arrow_schema(BURSTS_1M),
    )


def coarse(table, *after):
    """One row so many hours after nine o'clock, of a table of hours or days."""
    first = datetime(2026, 3, 1, 9, tzinfo=UTC)
    found = rows(*(hour * 60 for hour in after))
    found = found.rename_columns([table.time if name == "minute" else name for name in found.column_names])
    for name, value in (("minutes", 1), ("first_minute", first), ("last_minute", first)):
        found = found.append_column(name, pa.array([value] * found.num_rows))
    return found.cast(arrow_schema(table))


def put(root, hours, table, of=BURSTS_1M):
    """Replace hours in a change of its own."""
    transaction = Rollups(root).transaction("shop")
    transaction.replace_hours(of, hours, table)
    return transaction.commit()


def stands(root, table=BURSTS_1M):
    """The rows that count, in order."""
    files = read(root, "shop").paths(root, table.name)
    return pa.concat_tables([arrow_schema(table).empty_table(), *(pq.ParquetFile(path).read() for path in files)])


def test_writes_a_file_an_hour(tmp_path):
    """Rows go to the file of their hour, in the order of the key, with the schema of the contract."""
    manifest = put(tmp_path, [NINE, NINE + 1], rows(61, 5, 60, 0))
    first, second = manifest.files_for("bursts_1m")

    assert first.path.startswith("bursts_1m/cluster=shop/date=2026-03-01/hour=09.")
    assert [(NINE, NINE + 1, 2), (NINE + 1, NINE + 2, 2)] == [(it.start, it.end, it.rows) for it in (first, second)]
    assert rows(0, 5).equals(pq.ParquetFile(tmp_path / first.path).read())
    assert arrow_schema(BURSTS_1M).equals(pq.ParquetFile(tmp_path / second.path).schema_arrow)


def test_the_order_of_rows_leaves_no_trace(tmp_path):
    """The same rows in another order and in other pieces are the same content: nothing is committed."""
    before = put(tmp_path, [NINE], rows(*range(60)))
    after = put(tmp_path, [NINE], pa.concat_tables([rows(*range(59, 29, -1)), rows(*range(30))]))

    assert 1 == after.number
    assert before == after


def test_what_lies_below_a_null_is_no_content(tmp_path):
    """Arrow leaves these bytes undefined: only values count."""
    plain = rows(0)
    masked = pa.Array.from_buffers(pa.float64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(b"\1" * 8)])
    odd = plain.set_column(plain.column_names.index("interval_max"), "interval_max", masked)

    assert put(tmp_path, [NINE], plain) == put(tmp_path, [NINE], odd)


def test_nothing_shows_before_the_commit(tmp_path):
    """Staged files do not count, and an abandoned transaction changes nothing."""
    before = put(tmp_path, [NINE], rows(0))
    transaction = Rollups(tmp_path).transaction("shop")
    transaction.replace_hours(BURSTS_1M, [NINE], rows(1, 2))

    assert before == read(tmp_path, "shop")
    assert 2 == transaction.rows(BURSTS_1M, NINE, NINE + 1).num_rows
    assert rows(0).equals(stands(tmp_path))


def test_all_tables_change_at_once(tmp_path):
    """One commit is one number, over tables."""
    transaction = Rollups(tmp_path).transaction("shop")
    transaction.replace_hours(BURSTS_1M, [NINE], rows(0))
    transaction.replace_hours(BURSTS_1H, [NINE], coarse(BURSTS_1H, 0))
    manifest = transaction.commit()

    assert (1, {"bursts_1m", "bursts_1h"}) == (manifest.number, set(manifest.tables))


def test_an_hour_without_rows_has_no_file(tmp_path):
    """Where nothing is left of an hour, its file counts no more; other hours stay."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    manifest = put(tmp_path, [NINE], rows())

    assert [NINE + 1] == [it.start for it in manifest.files_for("bursts_1m")]


def test_an_hour_of_a_wider_file_is_replaced_alone(tmp_path):
    """Hours share the file of their date, days that of their month: the others stay."""
    put(tmp_path, [NINE, NINE + 1], coarse(BURSTS_1H, 0, 1), BURSTS_1H)
    put(tmp_path, [NINE + 1, NINE + 2], coarse(BURSTS_1H, 2), BURSTS_1H)
    put(tmp_path, range(NINE - 9, NINE + 15), coarse(BURSTS_1D, 0), BURSTS_1D)
    manifest = put(tmp_path, range(NINE + 15, NINE + 39), coarse(BURSTS_1D, 24), BURSTS_1D)
    (day,), (month,) = manifest.files_for("bursts_1h"), manifest.files_for("bursts_1d")

    assert [9, 11] == [moment.hour for moment in stands(tmp_path, BURSTS_1H)["hour"].to_pylist()]
    assert "/date=2026-03-01/day." in day.path
    assert "/date=2026-03-01/month." in month.path
    assert (2, 2) == (month.rows, len(month.parts))


def test_compacted_hours_are_one_file(tmp_path):
    """Of the same content; an hour in it can still be replaced, and one added."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    transaction = Rollups(tmp_path).transaction("shop")

    assert transaction.compact_day(BURSTS_1M, DAY)
    (it,) = transaction.commit().files_for("bursts_1m")
    assert (NINE - 9, NINE + 15, 2, 2) == (it.start, it.end, it.rows, len(it.parts))
    assert rows(0, 60).equals(stands(tmp_path))
    assert not Rollups(tmp_path).transaction("shop").compact_day(BURSTS_1M, DAY)

    put(tmp_path, [NINE + 1], rows(61, 62))
    put(tmp_path, [NINE + 2], rows(120))

    assert rows(0, 61, 62, 120).equals(stands(tmp_path))
    assert 1 == len(read(tmp_path, "shop").files_for("bursts_1m"))


def test_some_minutes_are_replaced(tmp_path):
    """Minutes before and after them stay, across hours, too; the content equals that of one replacement."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 30, 58, 59, 60, 90))
    transaction = Rollups(tmp_path).transaction("shop")
    transaction.upsert_ranges(BURSTS_1M, [(NINE * 3600 + 58 * 60, NINE * 3600 + 61 * 60)], rows(59, bursts=7))
    amended = transaction.commit()
    whole = pa.concat_tables([rows(0, 30), rows(59, bursts=7), rows(90)])

    assert whole.equals(stands(tmp_path))
    assert amended.tables == put(tmp_path, [NINE, NINE + 1], whole).tables


def test_a_whole_table_is_replaced(tmp_path):
    """Rows that are not in the new table are removed."""
    put(tmp_path, range(NINE - 9, NINE + 39), coarse(BURSTS_1H, 0, 24), BURSTS_1H)
    transaction = Rollups(tmp_path).transaction("shop")
    transaction.replace_table(BURSTS_1H, coarse(BURSTS_1H, 1))
    transaction.commit()

    assert coarse(BURSTS_1H, 1).equals(stands(tmp_path, BURSTS_1H))


def test_dropped_hours_keep_what_was_made_of_them(tmp_path):
    """The hour of dropped minutes stays without a source; minutes replaced by nothing are still its source."""
    minutes = put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    made_of = {int(start): part for it in minutes.files_for("bursts_1m") for start, part in it.parts.items()}
    transaction = Rollups(tmp_path).transaction("shop")
    for hour in made_of:
        transaction.replace_hours(BURSTS_1H, [hour], coarse(BURSTS_1H, 0, 1), made_of)
    transaction.drop_hours(BURSTS_1M, [NINE])
    transaction.replace_hours(BURSTS_1M, [NINE + 1], rows())
    manifest = transaction.commit()

    assert () == manifest.files_for("bursts_1m")
    assert [{str(NINE + 1)}] == [set(it.made_of) for it in manifest.files_for("bursts_1h")]
    assert 2 == stands(tmp_path, BURSTS_1H).num_rows


def test_a_file_that_is_removed_is_written_again(tmp_path):
    """Writing the same rows again restores a removed file."""
    manifest = put(tmp_path, [NINE], rows(0))
    (tmp_path / manifest.files_for("bursts_1m")[0].path).unlink()
    put(tmp_path, [NINE], rows(0))

    assert rows(0).equals(stands(tmp_path))


def test_counts_what_stands(tmp_path):
    """Rows of the files in the manifest are counted, also after a file was replaced."""
    rollups = Rollups(tmp_path)
    put(tmp_path, [NINE], rows(0, 1, 2))
    before = rollups.row_counts()
    put(tmp_path, [NINE], rows(0))

    assert dict.fromkeys(ROLLUPS, 0) | {"bursts_1m": 3} == before
    assert 1 == rollups.row_counts()["bursts_1m"]


def test_sweeps_what_nobody_needs(tmp_path):
    """Unfinished files are removed, replaced ones after a delay; current and foreign files stay."""
    old = tmp_path / put(tmp_path, [NINE], rows(0)).files_for("bursts_1m")[0].path
    fresh = tmp_path / put(tmp_path, [NINE], rows(1)).files_for("bursts_1m")[0].path
    now = tmp_path / put(tmp_path, [NINE], rows(2)).files_for("bursts_1m")[0].path
    half, strange = now.with_name(f".{now.name}.tmp"), now.with_name("hour=09.parquet")
    half.write_bytes(b"half")
    strange.write_bytes(b"not ours")
    for path in (old, now, strange):
        before = path.stat().st_mtime - GRACE_SECONDS - 60
        os.utime(path, (before, before))

    Rollups(tmp_path).vacuum()

    assert {fresh, now, strange} == set(now.parent.iterdir())


def test_time_to_go_counts_from_the_replacement(tmp_path):
    """A file that existed for days stays for readers of the previous manifest."""
    path = tmp_path / put(tmp_path, [NINE], rows(0)).files_for("bursts_1m")[0].path
    os.utime(path, (1, 1))
    put(tmp_path, [NINE], rows(1))

    Rollups(tmp_path).vacuum()

    assert path.exists()


def test_removes_nothing_without_a_manifest_that_can_be_read(tmp_path):
    """A damaged manifest is reported, and no file is removed."""
    path = tmp_path / put(tmp_path, [NINE], rows(0)).files_for("bursts_1m")[0].path
    os.utime(path, (1, 1))
    manifest_path(tmp_path, "shop").write_bytes(b"{")

    with pytest.raises(DataError, match="not a valid manifest"):
        Rollups(tmp_path).vacuum()

    assert path.exists()


HOLD = """
import sys
from pathlib import Path
from pipeline.stop import StoppedError
from pipeline.storage.rollups import Rollups
with Rollups(Path(sys.argv[1])).writer_lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_writer_at_a_time(tmp_path):
    """While another process rebuilds, the lock is held; when it is killed, the lock is free."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        try:
            assert b"held\n" == other.stdout.readline()

            with (tmp_path / "_lock").open() as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            other.kill()
    with Rollups(tmp_path).writer_lock(), (tmp_path / "_lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_clusters_have_locks_of_their_own(tmp_path):
    """Two clusters are written at the same time, one of them once, and the lock of the folder waits for both."""
    rollups = Rollups(tmp_path, go_on=lambda: False)
    with rollups.writer_lock("shop"), rollups.writer_lock("bank"):
        for taken in ("shop", "bank", None):
            with pytest.raises(StoppedError), rollups.writer_lock(taken):
                pytest.fail("two writers")
    with rollups.writer_lock(), pytest.raises(StoppedError), rollups.writer_lock("shop"):
        pytest.fail("two writers")


def test_what_an_executor_is_writing_is_left_alone(tmp_path):
    """A file with a token is written without the lock: it is removed when it is as old as a replaced file."""
    now = tmp_path / put(tmp_path, [NINE], rows(0)).files_for("bursts_1m")[0].path
    fresh, old = (now.with_name(f".{now.name}.{token}.tmp") for token in ("0" * 8, "1" * 8))
    for path in (fresh, old):
        path.write_bytes(b"half")
    before = old.stat().st_mtime - GRACE_SECONDS - 60
    os.utime(old, (before, before))

    Rollups(tmp_path).vacuum()

    assert {now, fresh} == set(now.parent.iterdir())


def test_refuses_a_folder_that_cannot_be_made(tmp_path):
    """A rollup path below a file is refused in one line."""
    (tmp_path / "file").write_text("x")

    with pytest.raises(DataError, match=r"--rollups .*/file/rollups: cannot be written \(Not a directory\)"):
        Rollups(tmp_path / "file" / "rollups")
