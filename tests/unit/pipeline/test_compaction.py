import os
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.errors import DataError
from ackscope.tables import ACK_BURSTS
from ackscope.tables.arrow import arrow_schema
from pipeline.storage import compaction, folder_listing
from pipeline.storage.compaction import (
    compaction_lock,
    discard,
    finish,
    output_count,
    scan_partition,
    swap_in,
    was_interrupted,
)
from pipeline.storage.landing import Landing, Partition

DAY = date(2026, 3, 1)
BURSTS = Partition(ACK_BURSTS, "shop", DAY)
FOREVER = 1e11
"""A watermark in the far future, so that everything counts as rolled up."""


class Killed(BaseException):
    """The process was killed: nothing is cleaned up."""


def write(root, name, *minutes, **more):
    """A landing file with a burst in each of these minutes of the day; two equal ones are two."""
    folder = root / BURSTS.folder
    folder.mkdir(parents=True, exist_ok=True)
    text = dict.fromkeys(("probe", "stream", "queue_type", "vhost", "node", "run_id"), "x")
    rows = [
        text
        | {"at": datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minute)}
        | {"frames": 1, "multiple_frames": 0, "messages": minute, "interval": None, "span": 0.0}
        for minute in minutes
    ]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(ACK_BURSTS))
    for column, value in more.items():
        table = table.append_column(column, [[value] * len(rows)])
    pq.write_table(table, folder / name)
    return folder / name


def visible(root):
    """Return the numbers of all bursts that a reader of the folder sees now."""
    paths = Landing(root).files(BURSTS)
    return sorted(number for path in paths for number in pq.read_table(path)["messages"].to_pylist())


def write_new(root, plan, count=2):
    """What Spark would write: all rows in the order of time, in some files."""
    place = plan.hidden(root)
    place.mkdir()
    rows = pa.concat_tables([pq.read_table(path) for path in plan.sources]).sort_by("at")
    step = -(-rows.num_rows // count)
    for number in range(count):
        pq.write_table(rows.slice(number * step, step), place / f"part-{number}.parquet")
    return sorted(place.glob("part-*"))


@pytest.fixture
def landing(tmp_path):
    """Three small files, two of which have the same minute."""
    for name, minutes in (("a", (1, 2)), ("b", (2, 3)), ("c", (61, 62))):
        write(tmp_path, f"{name}.parquet", *minutes)
    return tmp_path


def planned(root, watermark=FOREVER):
    """The compaction plan."""
    return scan_partition(Landing(root), BURSTS, watermark).plan


def test_files_become_few_and_rows_stay(landing):
    """No row is lost or doubled, none of the old files is left, and the new ones are as old as their newest source."""
    before, plan = visible(landing), planned(landing)
    swap_in(landing, plan, write_new(landing, plan))
    discard(landing, plan)
    names = sorted(path.name for path in (landing / BURSTS.folder).iterdir())

    assert before == visible(landing)
    assert all(folder_listing.COMPACTED.fullmatch(name) for name in names)
    assert 2 == len(names)
    assert {plan.newest} == {path.stat().st_mtime_ns for path in (landing / BURSTS.folder).iterdir()}
    assert all(Landing.is_compacted(landing / name) for name in names)


def steps(root, monkeypatch, crash_at):
    """Count the calls that change the disk, and simulate a kill before one of them."""
    calls = []

    def counted(name):
        real = getattr(os, name)

        def call(*args, **more):
            calls.append(name)
            if len(calls) == crash_at:
                raise Killed
            return real(*args, **more)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "replace", "unlink", "fsync", "utime"):
            patch.setattr(os, name, counted(name))
        plan = planned(root)
        written = write_new(root, plan)
        try:
            swap_in(root, plan, written)
        except Killed:
            return True
    return False


def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path, monkeypatch):
    """Before each call that changes the disk: a reader sees each row once, and the next compaction completes it."""
    killed = 0
    for crash_at in range(1, 100):
        root = tmp_path / str(crash_at)
        for name, minutes in (("a", (1, 2)), ("b", (2, 3)), ("c", (61, 62))):
            write(root, f"{name}.parquet", *minutes)
        went_off = steps(root, monkeypatch, crash_at)

        assert [1, 2, 2, 3, 61, 62] == visible(root)

        assert was_interrupted(root, BURSTS)
        finish(root, BURSTS)

        assert [1, 2, 2, 3, 61, 62] == visible(root)
        assert not was_interrupted(root, BURSTS)
        assert not [path for path in (root / BURSTS.folder).iterdir() if path.name.startswith(("_", "."))]
        if not went_off:
            break
        killed += 1

    assert 12 < killed < 99


def test_a_late_file_joins_those_of_before(landing):
    """Compacted files are small, too: they are merged again with a late one."""
    plan = planned(landing)
    swap_in(landing, plan, write_new(landing, plan, 1))
    discard(landing, plan)

    assert planned(landing) is None

    write(landing, "late.parquet", 5)
    plan = planned(landing)
    swap_in(landing, plan, write_new(landing, plan, 1))
    discard(landing, plan)

    assert [1, 2, 2, 3, 5, 61, 62] == visible(landing)
    assert 1 == len(list((landing / BURSTS.folder).iterdir()))


def test_only_what_is_rolled_up_is_put_together(landing):
    """A file that is younger than the mark waits: a stream would take it for done."""
    early = max(path.stat().st_ctime for path in (landing / BURSTS.folder).iterdir())
    write(landing, "new.parquet", 99)
    os.utime(landing / BURSTS.folder / "new.parquet", (0, 0))
    found = scan_partition(Landing(landing), BURSTS, early + 1e-6)

    assert ["a.parquet", "b.parquet", "c.parquet"] == [path.name for path in found.plan.sources]
    assert (4, 1) == (found.files, found.behind)
    assert scan_partition(Landing(landing), BURSTS, 0.0).plan is None


def test_what_would_lose_a_column_stays(landing):
    """A newer exporter may write more columns than this pipeline knows."""
    write(landing, "newer.parquet", 7, colour="red")

    assert "newer.parquet" not in {path.name for path in planned(landing).sources}


def test_large_files_stay(landing, monkeypatch):
    """What is large enough is not written again."""
    monkeypatch.setattr(compaction, "LARGE_FILE_BYTES", (landing / BURSTS.folder / "a.parquet").stat().st_size)

    assert planned(landing) is None


def test_many_bytes_become_several_files(landing, monkeypatch):
    """The number follows from the compressed size of a sample; few bytes become one file."""
    plan = planned(landing)

    assert 1 == output_count(plan)

    monkeypatch.setattr(compaction, "_SINGLE_FILE_BYTES", plan.bytes // 10)
    monkeypatch.setattr(compaction, "_TARGET_BYTES", plan.bytes // 10)

    assert 2 <= output_count(plan) <= 6


def test_a_source_that_changed_meanwhile_stops_it(landing):
    """No file is added, and none is removed."""
    plan = planned(landing)
    written = write_new(landing, plan)
    (landing / BURSTS.folder / "b.parquet").unlink()

    assert swap_in(landing, plan, written) is None

    discard(landing, plan)

    assert [1, 2, 61, 62] == visible(landing)


def test_rows_that_do_not_add_up_stop_it(landing):
    """A file with too few rows never takes the place of its sources."""
    plan = planned(landing)
    written = write_new(landing, plan)[:1]

    with pytest.raises(DataError, match=r"date=2026-03-01: merging turned 6 rows into 3; its files are unchanged"):
        swap_in(landing, plan, written)

    discard(landing, plan)

    assert [1, 2, 2, 3, 61, 62] == visible(landing)


def test_a_damaged_note_is_reported(landing):
    """Which files count cannot be known: nothing is read, moved or removed."""
    (landing / BURSTS.folder / "_replaces-0123abcd.json").write_bytes(b"{")

    with pytest.raises(
        DataError, match=r"_replaces-0123abcd\.json: is damaged \(it records which files were compacted"
    ):
        visible(landing)


def test_two_at_once_are_refused(tmp_path):
    """The second one gets an error of one line."""
    with (
        compaction_lock(tmp_path),
        pytest.raises(DataError, match="another `compact` is running there; wait until it ends"),
        compaction_lock(tmp_path),
    ):
        pass
    with compaction_lock(tmp_path):
        pass


def test_a_folder_whose_sources_are_going_is_read_at_once(landing, monkeypatch):
    """Removing thousands of sources takes long; nobody waits for it, because they do not count any more."""
    plan = planned(landing)
    (new,) = write_new(landing, plan, 1)
    folder = landing / BURSTS.folder
    name = "compacted-20260301T000000-0123abcd-000000.parquet"
    note = folder_listing.CompactionNote("0123abcd", frozenset([name]), frozenset(path.name for path in plan.sources))
    folder_listing.write_note(folder, note)
    new.rename(folder / name)

    def never(_seconds):
        raise AssertionError("it waits")

    monkeypatch.setattr(folder_listing.time, "sleep", never)
    (folder / "a.parquet").unlink()

    assert [folder / name] == list(folder_listing.list_folder(folder).files)
