import logging
import os
import shutil
from datetime import UTC, datetime

import pyarrow.dataset as ds
import pytest

from ackscope.tables import ACK_BURSTS, CHANNEL_SAMPLES, LANDING, PROBE_MESSAGES, QUEUE_SAMPLES
from exporter.landing.blocks import Block, BlockKey, arrow_schema, record_blocks
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter
from tests.unit.exporter.made import SetClock, burst, eventually, message

DAY = "date=2023-11-14"
MIDNIGHT = 1_700_006_400.0


def writer(root, **settings):
    """Return a writer without its thread: it writes on demand."""
    return LandingWriter(root, LandingSettings(directory=root.parent, **settings), SetClock())


def files(root):
    """Every file below a folder, hidden ones too, relative to it."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def read(root, table):
    """The rows of a table as any reader of partitioned Parquet finds them."""
    return ds.dataset(root / table.name, format="parquet", partitioning="hive").to_table().to_pylist()


def test_rows_become_files_in_their_partitions(tmp_path):
    """A file for each table, cluster and date; the rows read back with their partition columns."""
    landing = writer(tmp_path)
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=1), message(seq=2, intended_at=MIDNIGHT)]))
    landing.add(record_blocks(PROBE_MESSAGES, "depot", [message(seq=3)]))
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
    landing.flush()
    folders = [name.rpartition("/")[0] for name in files(tmp_path)]

    assert [
        f"ack_bursts/cluster=shop/{DAY}",
        f"probe_messages/cluster=depot/{DAY}",
        f"probe_messages/cluster=shop/{DAY}",
        "probe_messages/cluster=shop/date=2023-11-15",
    ] == folders
    assert {(1, "shop", "2023-11-14"), (2, "shop", "2023-11-15"), (3, "depot", "2023-11-14")} == {
        (row["seq"], row["cluster"], str(row["date"])) for row in read(tmp_path, PROBE_MESSAGES)
    }


def test_a_file_has_exactly_the_declared_schema(tmp_path):
    """Partition columns are in the path only."""
    landing = writer(tmp_path)
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message()]))
    landing.flush()
    schema = ds.dataset(tmp_path / files(tmp_path)[0]).schema

    assert arrow_schema(PROBE_MESSAGES) == schema


def test_names_differ_between_files_and_between_runs(tmp_path):
    """Two writers at the same moment, two files each: four names, none hidden."""
    for landing in (writer(tmp_path), writer(tmp_path)):
        for _ in range(2):
            landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
            landing.flush()
    names = [name.rpartition("/")[2] for name in files(tmp_path)]

    assert len(set(names)) == 4
    assert all(name.startswith("20231114T221320-") and name.endswith(".parquet") for name in names)


def test_nothing_to_write_is_no_file(tmp_path):
    """A quiet stretch leaves no empty files."""
    landing = writer(tmp_path)
    landing.add([])
    landing.flush()

    assert [] == files(tmp_path)


def test_what_was_written_is_counted(tmp_path):
    """Rows by table, files, and what waits."""
    landing = writer(tmp_path)
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst(), burst()]))
    landing.flush()
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
    counts = landing.counts()

    assert {**dict.fromkeys(LANDING, 0), "ack_bursts": 2} == counts.rows
    assert (1, 0, {}, 1) == (counts.files, counts.errors, counts.dropped, counts.buffered)
    assert (tmp_path / files(tmp_path)[0]).stat().st_size == counts.written == counts.folder_bytes


def test_a_disk_in_trouble_costs_no_rows_and_is_reported_once(tmp_path, caplog):
    """The rows wait in order, the log says it once, and once again when it is over."""
    root = tmp_path / "landing"
    root.write_text("a file where a folder should be")
    landing = writer(root)
    with caplog.at_level(logging.INFO):
        for number in (1, 2):
            landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number)]))
            landing.flush()
        broken = landing.counts()
        root.unlink()
        landing.flush()
    logged = [(record.msg["event"], record.msg.get("error")) for record in caplog.records]

    assert (0, 2, {}, 2) == (broken.files, broken.errors, broken.dropped, broken.buffered)
    assert [1, 2] == [row["seq"] for row in read(root, PROBE_MESSAGES)]
    assert [
        ("landing files cannot be written; rows are buffered", f"{root}: Not a directory"),
        ("landing files can be written again", None),
    ] == logged


def test_trouble_in_one_place_holds_up_no_other(tmp_path):
    """Only the rows that could not be written wait, and none is written twice."""
    blocked = tmp_path / "ack_bursts"
    blocked.write_text("a file where a folder should be")
    landing = writer(tmp_path)
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message()]))
    landing.flush()
    landing.flush()

    assert 1 == len(read(tmp_path, PROBE_MESSAGES))
    assert 1 == landing.counts().buffered
    assert {**dict.fromkeys(LANDING, 0), "probe_messages": 1} == landing.counts().rows


def test_beyond_the_bound_the_oldest_rows_go(tmp_path):
    """Newer ones are worth more, and the loss is counted."""
    root = tmp_path / "landing"
    root.write_text("a file where a folder should be")
    landing = writer(root, buffer_rows=3)
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number) for number in (1, 2)]))
    landing.flush()
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number) for number in (3, 4, 5)]))
    landing.flush()
    dropped = landing.counts().dropped
    root.unlink()
    landing.flush()

    assert {("probe_messages", "buffer"): 2} == dropped
    assert [3, 4, 5] == [row["seq"] for row in read(root, PROBE_MESSAGES)]


def test_rows_that_break_the_contract_do_not_block_the_others(tmp_path):
    """They can never be written: dropped, counted, logged; what follows is written."""
    landing = writer(tmp_path)
    key = BlockKey(PROBE_MESSAGES, "shop", "2023-11-14")
    landing.add([Block(key, 1, lambda: [("no number",)] * len(PROBE_MESSAGES.columns))])
    landing.add(record_blocks(PROBE_MESSAGES, "shop", [message()]))
    landing.flush()
    counts = landing.counts()

    assert (1, 1, 0) == (counts.files, counts.errors, counts.buffered)
    assert {("probe_messages", "contract"): 1} == counts.dropped
    assert 1 == len(read(tmp_path, PROBE_MESSAGES))
    assert not [name for name in files(tmp_path) if ".tmp" in name]


@pytest.mark.parametrize("settings", [{"rotate": 0.1}, {"rotate": 3600, "file_rows": 2}])
def test_a_started_writer_writes_by_itself(tmp_path, settings):
    """After its time, or when there are enough rows."""
    landing = writer(tmp_path, **settings)
    landing.start()
    try:
        landing.add(record_blocks(ACK_BURSTS, "shop", [burst(), burst()]))
        eventually(lambda: landing.counts().files == 1)
    finally:
        landing.stop()

    assert 2 == len(read(tmp_path, ACK_BURSTS))


def test_what_waits_is_written_at_the_end(tmp_path):
    """A stop is not a loss."""
    landing = writer(tmp_path, rotate=3600)
    landing.start()
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
    landing.stop()

    assert 1 == len(read(tmp_path, ACK_BURSTS))


def test_the_folder_date_is_utc():
    """Whatever the zone of the machine."""
    late = record_blocks(PROBE_MESSAGES, "shop", [message(intended_at=MIDNIGHT - 1)])

    assert ["2023-11-14"] == [block.key.date for block in late]
    assert datetime.fromtimestamp(MIDNIGHT, UTC).hour == 0


def blocked(root):
    """Return a file at the path of the landing folder, which blocks writing; remove it to end the failure."""
    root.write_text("in the way")
    return root


def test_a_long_outage_costs_memory_for_the_bound_only(tmp_path):
    """However many portions come meanwhile: the oldest rows of whatever table go first, and each is counted."""
    root = blocked(tmp_path / "landing")
    landing = writer(root, buffer_rows=6)
    for number in range(8):
        landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number)]))
        landing.add(record_blocks(ACK_BURSTS, "shop", [burst(frames=number)]))
        landing.flush()
    held = landing.counts()
    root.unlink()
    landing.flush()

    assert (6, {("probe_messages", "buffer"): 5, ("ack_bursts", "buffer"): 5}) == (held.buffered, held.dropped)
    assert [5, 6, 7] == [row["seq"] for row in read(root, PROBE_MESSAGES)]
    assert [5, 6, 7] == [row["frames"] for row in read(root, ACK_BURSTS)]


def test_portions_that_came_together_wait_as_one(tmp_path):
    """A slow disk holds up a few tables, and not thousands of little ones."""
    root = blocked(tmp_path / "landing")
    landing = writer(root)
    for number in range(50):
        landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number)]))
    landing.flush()
    root.unlink()
    landing.flush()

    assert 50 == landing.counts().rows["probe_messages"]
    assert list(range(50)) == [row["seq"] for row in read(root, PROBE_MESSAGES)]


def test_a_loss_is_known_once_rows_are_written_again(tmp_path):
    """Tables of changes must then be begun again: before that, it would only make more rows to lose."""
    root = blocked(tmp_path / "landing")
    landing = writer(root, buffer_rows=1)
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst(), burst(frames=9)]))
    landing.flush()
    during = landing.drop_count
    root.unlink()
    for _ in range(2):
        landing.add(record_blocks(ACK_BURSTS, "shop", [burst()]))
        landing.flush()

    assert (0, 1) == (during, landing.drop_count)


def test_a_full_disk_is_survived(tmp_path, monkeypatch, caplog):
    """Nothing half written stays; it is reported once, and all rows are there when there is room again."""

    def full(_handle):
        raise OSError(28, "No space left on device")

    landing = writer(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        for number in (1, 2):
            landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number)]))
            landing.flush()
        left = files(tmp_path)
    landing.flush()

    assert [] == left
    assert [1, 2] == [row["seq"] for row in read(tmp_path, PROBE_MESSAGES)]
    assert 1 == sum("No space left on device" in record.getMessage() for record in caplog.records)


def test_a_folder_that_went_is_made_again(tmp_path):
    """Someone removed it; the exporter goes on."""
    root = tmp_path / "landing"
    landing = writer(root)
    for number in (1, 2):
        landing.add(record_blocks(PROBE_MESSAGES, "shop", [message(seq=number)]))
        landing.flush()
        if number == 1:
            shutil.rmtree(root)

    assert [2] == [row["seq"] for row in read(root, PROBE_MESSAGES)]
    assert 0 == landing.counts().errors


def test_old_files_are_removed_as_new_ones_are_written(tmp_path):
    """Once a minute, counted; the newest stay."""
    clock = SetClock()
    landing = LandingWriter(tmp_path, LandingSettings(directory=tmp_path, max_age=3600), clock)
    for _ in range(4):
        landing.add(record_blocks(ACK_BURSTS, "shop", [burst(at=clock.now().wall)]))
        landing.flush()
        clock.mono += 1900
    counts = landing.counts()

    assert (4, 2, 0) == (counts.files, counts.expired_files, counts.errors)
    assert 2 == len(files(tmp_path))
    assert counts.written == counts.folder_bytes + counts.expired_bytes
    assert 1900 == counts.last_write_age


@pytest.mark.parametrize(("later", "expired"), [(60.0, 0), (3700.0, 1)])
def test_a_clock_that_is_set_forward_does_not_make_files_old_at_once(tmp_path, later, expired):
    """A host that starts with the wrong year removes no history, if that is corrected within the hour."""
    clock = SetClock()
    landing = LandingWriter(tmp_path, LandingSettings(directory=tmp_path, max_age=7 * 86400), clock)
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst(at=clock.now().wall)]))
    landing.flush()
    clock.mono, clock.jumped = clock.mono + 60, 30 * 86400.0
    landing.flush()
    clock.mono += later
    landing.flush()

    assert expired == landing.counts().expired_files


def test_what_cannot_be_removed_is_reported_once(tmp_path, monkeypatch, caplog):
    """And counted each time."""
    clock = SetClock()
    landing = LandingWriter(tmp_path, LandingSettings(directory=tmp_path, max_age=3600), clock)
    landing.add(record_blocks(ACK_BURSTS, "shop", [burst(at=clock.now().wall)]))
    landing.flush()

    def refuse(_path, **_how):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    for _ in range(2):
        clock.mono += 8000
        landing.flush()

    assert (2, 0) == (landing.counts().errors, landing.counts().expired_files)
    assert 1 == sum("cannot be removed" in record.getMessage() for record in caplog.records)


def test_what_never_became_rows_is_counted(tmp_path):
    """Objects beyond a cap, and snapshots of which no rows could be made."""
    landing = writer(tmp_path)
    landing.count_dropped(CHANNEL_SAMPLES, 7)
    landing.count_dropped(CHANNEL_SAMPLES, 0)
    defects = [landing.defect(QUEUE_SAMPLES), landing.defect(QUEUE_SAMPLES)]
    counts = landing.counts()

    assert {("channel_samples", "cap"): 7} == counts.dropped
    assert [1, 2] == defects
    assert {"queue_samples": 2} == counts.defects
