import logging
from datetime import UTC, datetime

import pyarrow.dataset as ds
import pytest

from ackscope.tables import ACK_BURSTS, PROBE_MESSAGES
from exporter.landing.rows import Row, arrow_schema, burst_rows, message_rows
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter
from tests.unit.exporter.made import SetClock, burst, eventually, message

DAY = "date=2023-11-14"
MIDNIGHT = 1_700_006_400.0


def writer(root, **settings):
    """A writer that is not started: it writes when told."""
    return LandingWriter(root, LandingSettings(directory=root, **settings), SetClock())


def files(root):
    """Every file below a folder, hidden ones too, relative to it."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def read(root, table):
    """The rows of a table as any reader of partitioned Parquet finds them."""
    return ds.dataset(root / table.name, format="parquet", partitioning="hive").to_table().to_pylist()


def test_rows_become_files_in_their_partitions(tmp_path):
    """A file for each table, cluster and date; the rows read back with their partition columns."""
    landing = writer(tmp_path)
    landing.add(PROBE_MESSAGES, message_rows("shop", [message(seq=1), message(seq=2, intended_at=MIDNIGHT)]))
    landing.add(PROBE_MESSAGES, message_rows("depot", [message(seq=3)]))
    landing.add(ACK_BURSTS, burst_rows("shop", [burst()]))
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
    landing.add(PROBE_MESSAGES, message_rows("shop", [message()]))
    landing.flush()
    schema = ds.dataset(tmp_path / files(tmp_path)[0]).schema

    assert arrow_schema(PROBE_MESSAGES) == schema


def test_names_differ_between_files_and_between_runs(tmp_path):
    """Two writers at the same moment, two files each: four names, none hidden."""
    for landing in (writer(tmp_path), writer(tmp_path)):
        for _ in range(2):
            landing.add(ACK_BURSTS, burst_rows("shop", [burst()]))
            landing.flush()
    names = [name.rpartition("/")[2] for name in files(tmp_path)]

    assert len(set(names)) == 4
    assert all(name.startswith("20231114T221320-") and name.endswith(".parquet") for name in names)


def test_nothing_to_write_is_no_file(tmp_path):
    """A quiet stretch leaves no empty files."""
    landing = writer(tmp_path)
    landing.add(ACK_BURSTS, [])
    landing.flush()

    assert [] == files(tmp_path)


def test_what_was_written_is_counted(tmp_path):
    """Rows by table, files, and what waits."""
    landing = writer(tmp_path)
    landing.add(ACK_BURSTS, burst_rows("shop", [burst(), burst()]))
    landing.flush()
    landing.add(ACK_BURSTS, burst_rows("shop", [burst()]))
    counts = landing.counts()

    assert {"probe_messages": 0, "ack_bursts": 2, "probe_steps": 0, "queue_samples": 0} == counts.rows
    assert (1, 0, 0, 1) == (counts.files, counts.errors, counts.dropped, counts.buffered)


def test_a_disk_in_trouble_costs_no_rows_and_is_told_once(tmp_path, caplog):
    """The rows wait in order, the log says it once, and once again when it is over."""
    root = tmp_path / "landing"
    root.write_text("a file where a folder should be")
    landing = writer(root)
    with caplog.at_level(logging.INFO):
        for number in (1, 2):
            landing.add(PROBE_MESSAGES, message_rows("shop", [message(seq=number)]))
            landing.flush()
        broken = landing.counts()
        root.unlink()
        landing.flush()
    told = [record.getMessage() for record in caplog.records]

    assert (0, 2, 0, 2) == (broken.files, broken.errors, broken.dropped, broken.buffered)
    assert [1, 2] == [row["seq"] for row in read(root, PROBE_MESSAGES)]
    assert [
        f"landing files cannot be written: {root}: Not a directory; free space or mend the folder, rows wait",
        "landing files are written again",
    ] == told


def test_trouble_in_one_place_holds_up_no_other(tmp_path):
    """Only the rows that could not be written wait, and none is written twice."""
    blocked = tmp_path / "ack_bursts"
    blocked.write_text("a file where a folder should be")
    landing = writer(tmp_path)
    landing.add(ACK_BURSTS, burst_rows("shop", [burst()]))
    landing.add(PROBE_MESSAGES, message_rows("shop", [message()]))
    landing.flush()
    landing.flush()

    assert 1 == len(read(tmp_path, PROBE_MESSAGES))
    assert 1 == landing.counts().buffered
    assert {"probe_messages": 1, "ack_bursts": 0, "probe_steps": 0, "queue_samples": 0} == landing.counts().rows


def test_beyond_the_bound_the_oldest_rows_go(tmp_path):
    """Newer ones are worth more, and the loss is counted."""
    root = tmp_path / "landing"
    root.write_text("a file where a folder should be")
    landing = writer(root, buffer_rows=3)
    landing.add(PROBE_MESSAGES, message_rows("shop", [message(seq=number) for number in (1, 2)]))
    landing.flush()
    landing.add(PROBE_MESSAGES, message_rows("shop", [message(seq=number) for number in (3, 4, 5)]))
    landing.flush()
    dropped = landing.counts().dropped
    root.unlink()
    landing.flush()

    assert 2 == dropped
    assert [3, 4, 5] == [row["seq"] for row in read(root, PROBE_MESSAGES)]


def test_rows_that_break_the_contract_do_not_block_the_others(tmp_path):
    """They can never be written: dropped, counted, logged; what follows is written."""
    landing = writer(tmp_path)
    good = message_rows("shop", [message()])[0]
    landing.add(PROBE_MESSAGES, [Row("shop", "2023-11-13", (good.values[0], None, *good.values[2:]))])
    landing.add(PROBE_MESSAGES, [good])
    landing.flush()
    counts = landing.counts()

    assert (1, 1, 1, 0) == (counts.files, counts.errors, counts.dropped, counts.buffered)
    assert 1 == len(read(tmp_path, PROBE_MESSAGES))
    assert not [name for name in files(tmp_path) if ".tmp" in name]


@pytest.mark.parametrize("settings", [{"rotate": 0.1}, {"rotate": 3600, "file_rows": 2}])
def test_a_started_writer_writes_by_itself(tmp_path, settings):
    """After its time, or when there are enough rows."""
    landing = writer(tmp_path, **settings)
    landing.start()
    try:
        landing.add(ACK_BURSTS, burst_rows("shop", [burst(), burst()]))
        eventually(lambda: landing.counts().files == 1)
    finally:
        landing.stop()

    assert 2 == len(read(tmp_path, ACK_BURSTS))


def test_what_waits_is_written_at_the_end(tmp_path):
    """A stop is not a loss."""
    landing = writer(tmp_path, rotate=3600)
    landing.start()
    landing.add(ACK_BURSTS, burst_rows("shop", [burst()]))
    landing.stop()

    assert 1 == len(read(tmp_path, ACK_BURSTS))


def test_the_folder_date_is_utc():
    """Whatever the zone of the machine."""
    assert "2023-11-14" == message_rows("shop", [message(intended_at=MIDNIGHT - 1)])[0].date
    assert datetime.fromtimestamp(MIDNIGHT, UTC).hour == 0
