from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest

from ackscope.tables import HOURS, MINUTES, OUTCOMES_1M, QUEUES_1M
from dashboard.data import rollups as reader
from tests.dashboard.rollup_files import outcome_row, queue_row, this_minute, write

END = this_minute()
START = END - timedelta(hours=1)


def test_no_folder_yet(tmp_path: Path) -> None:
    """A pipeline that has not run yet is not an error: all tables are reported as missing."""
    root = tmp_path / "none"
    history = reader.read(root, "shop", START, END)

    assert (tuple(MINUTES), None) == (history.missing, history.problem)
    assert history.latency.empty
    assert () == reader.clusters(root)
    assert reader.last_minute(root, "shop") is None


def test_only_the_requested_cluster_and_time_are_read(tmp_path: Path) -> None:
    """The end is exclusive."""
    rows = [outcome_row(START - timedelta(minutes=1)), outcome_row(START), outcome_row(END)]
    write(tmp_path, OUTCOMES_1M, rows)
    write(tmp_path, OUTCOMES_1M, [outcome_row(START)], cluster="other")

    assert [START] == list(reader.read(tmp_path, "shop", START, END).outcomes["minute"])


@pytest.mark.parametrize(("days", "ready"), [(1, 7), (2, 900)])
def test_a_range_over_a_day_is_read_from_the_hours(tmp_path: Path, days: int, ready: int) -> None:
    """In the same columns: a week of minutes of 10,000 queues would take too long."""
    hour = END.replace(minute=0) - timedelta(hours=2)
    write(tmp_path, QUEUES_1M, [queue_row(hour, "orders", 7, redelivered=1)])
    known = {"hour": hour, "minutes": 60, "first_minute": hour, "last_minute": hour + timedelta(minutes=59)}
    write(tmp_path, HOURS[QUEUES_1M.name], [queue_row(hour, "orders", 900, redelivered=60) | known])
    history = reader.read(tmp_path, "shop", hour + timedelta(hours=1, days=-days), hour + timedelta(hours=1))

    assert [(hour, ready)] == list(history.depth[["minute", "messages_ready_max"]].itertuples(index=False, name=None))
    assert [(hour, 1 if days == 1 else 60)] == list(history.redelivered.itertuples(index=False, name=None))
    assert list(history.latency.columns) == list(reader.MinuteHistory().latency.columns)


def test_the_newest_minute_and_its_hour_are_left_out(tmp_path: Path) -> None:
    """A pipeline that ran during it has a part of its messages."""
    hour = END.replace(minute=0) - timedelta(hours=3)
    minutes = [hour + timedelta(minutes=it) for it in (0, 61, 62)]
    newest = minutes[-1]
    write(tmp_path, OUTCOMES_1M, [outcome_row(it) for it in minutes])
    known = {"minutes": 60, "first_minute": hour, "last_minute": hour}
    hours = [outcome_row(it) | known | {"hour": it} for it in (hour, hour + timedelta(hours=1))]
    write(tmp_path, HOURS[OUTCOMES_1M.name], hours)

    assert minutes[:-1] == list(reader.read(tmp_path, "shop", hour, END, newest).outcomes["minute"])
    assert [hour] == list(reader.read(tmp_path, "shop", hour - timedelta(days=2), END, newest).outcomes["minute"])


def test_clusters_and_their_last_minute(rollups: Path) -> None:
    """Both are known from the files alone."""
    write(rollups, OUTCOMES_1M, [outcome_row(START)], cluster="a b")

    assert ("a b", "shop") == reader.clusters(rollups)
    assert START == reader.last_minute(rollups, "a b")
    assert timedelta() < this_minute() - reader.last_minute(rollups, "shop") < timedelta(minutes=3)


def test_files_outside_the_manifest_are_ignored(tmp_path: Path) -> None:
    """They are not complete yet, or were replaced."""
    write(tmp_path, OUTCOMES_1M, [outcome_row(START)])
    folder = next(tmp_path.glob("outcomes_1m/*/*"))
    (folder / ".hour=99.parquet").write_bytes(b"half")
    (folder / "hour=99.0123456789abcdef.parquet").write_bytes(b"half")

    assert reader.read(tmp_path, "shop", START, END).problem is None


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """The error is part of the result, not an exception and not a gap."""
    write(tmp_path, OUTCOMES_1M, [outcome_row(START)])
    file = next(tmp_path.glob("outcomes_1m/*/*/*.parquet"))
    file.write_bytes(b"not parquet")
    history = reader.read(tmp_path, "shop", START, END)

    assert str(file) in history.problem
    assert history.outcomes.empty
    assert reader.last_minute(tmp_path, "shop") is None


def test_a_failed_read_is_retried_once(tmp_path: Path) -> None:
    """A file may be replaced during the first attempt."""
    file = tmp_path / "replaced.txt"

    def attempt(_: object) -> str:
        if file.exists():
            return file.read_text()
        try:
            return file.read_text()
        finally:
            file.write_text("there")

    assert ("there", None) == reader.read_with_retry(tmp_path, "shop", attempt)


def test_files_that_are_replaced_all_the_time_are_read(tmp_path: Path) -> None:
    """The pipeline replaces the manifest at any time: readers see the old or the new rows."""
    stop = Event()

    def replace() -> None:
        while not stop.is_set():
            write(tmp_path, OUTCOMES_1M, [outcome_row(START)])

    write(tmp_path, OUTCOMES_1M, [outcome_row(START)])
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(replace)
        seen = [reader.read(tmp_path, "shop", START, END) for _ in range(20)]
        stop.set()
        writer.result()

    assert {(None, 1)} == {(history.problem, len(history.outcomes)) for history in seen}


def test_a_column_missing_in_old_files_is_null(tmp_path: Path) -> None:
    """Not zero."""
    write(tmp_path, OUTCOMES_1M, [outcome_row(START)])
    file = next(tmp_path.glob("outcomes_1m/*/*/*.parquet"))
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["missing"]), file)

    assert reader.read(tmp_path, "shop", START, END).outcomes["missing"].isna().all()


def test_the_deepest_queues_are_selected_over_all_hours(tmp_path: Path) -> None:
    """By the peak of ready and unacked; empty queues are excluded."""
    rows = [queue_row(START, f"q{index}", index, messages_unacked_max=0) for index in range(9)]
    rows.append(queue_row(END - timedelta(minutes=1), "late", 5, messages_unacked_max=500))
    write(tmp_path, QUEUES_1M, rows)
    depth = reader.read(tmp_path, "shop", START, END).depth

    assert {"late", "q8", "q7", "q6"} == set(depth["queue"])


def test_idle_queues_are_not_deep(tmp_path: Path) -> None:
    """Neither zero nor an unknown length is a backlog."""
    rows = [queue_row(START, "idle", 0, messages_unacked_max=0)]
    rows.append(queue_row(START, "unknown", None, messages_unacked_max=None))
    write(tmp_path, QUEUES_1M, rows)

    assert reader.read(tmp_path, "shop", START, END).depth.empty


def test_redeliveries_are_summed_over_queues_and_unknown_stays_unknown(tmp_path: Path) -> None:
    """A minute in which no queue reports redeliveries has no sum."""
    second = START + timedelta(minutes=1)
    rows = [queue_row(START, "a", 1, redelivered=2), queue_row(START, "b", 1, redelivered=3)]
    rows.append(queue_row(second, "a", 1, redelivered=None))
    write(tmp_path, QUEUES_1M, rows)
    sums = reader.read(tmp_path, "shop", START, END).redelivered.set_index("minute")["redelivered"]

    assert 5 == sums[START]
    assert sums.isna()[second]
