"""Order of rows in the files of rollups."""

import io
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.manifest import read
from ackscope.tables import QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import first_hour
from pipeline.storage import row_order
from pipeline.storage.digest import digest
from pipeline.storage.rollups import Rollups

DAY = date(2026, 3, 1)
MIDNIGHT = first_hour(DAY)
QUEUES = [("a", "last"), ("b", "first"), ("b", "second")]


def minutes(hour, ready=0):
    """Return every minute of an hour of all queues, in random order."""
    blank = dict.fromkeys(QUEUES_1M.names) | dict.fromkeys(("samples", "messages_ready_max", "busy"), ready)
    start = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=hour)
    return pa.Table.from_pylist(
        [
            blank | {"minute": start + timedelta(minutes=minute), "vhost": vhost, "queue": queue, "samples": minute}
            for minute in reversed(range(60))
            for vhost, queue in QUEUES
        ],
        schema=arrow_schema(QUEUES_1M),
    )


def put(root, hour, rows):
    """One hour in a change of its own."""
    transaction = Rollups(root).transaction("shop")
    transaction.replace_hours(QUEUES_1M, [MIDNIGHT + hour], rows)
    return transaction.commit()


@pytest.fixture
def compacted(tmp_path):
    """The rollups of three hours in one file, and the digests of these hours before."""
    for hour in range(3):
        manifest = put(tmp_path, hour, minutes(hour))
    parts = {start: text for it in manifest.files_for("queues_1m") for start, text in it.parts.items()}
    transaction = Rollups(tmp_path).transaction("shop")
    assert transaction.compact_day(QUEUES_1M, DAY)
    transaction.commit()
    return tmp_path, parts


def the_file(root):
    """The only file of minutes of queues."""
    (path,) = read(root, "shop").paths(root, "queues_1m")
    return pq.ParquetFile(path)


def test_rows_of_an_hour_lie_by_time(tmp_path):
    """A query for a minute skips the others."""
    put(tmp_path, 0, minutes(0))

    found_rows = the_file(tmp_path).read().to_pylist()
    assert [(row["minute"], row["vhost"], row["queue"]) for row in found_rows] == sorted(
        (row["minute"], row["vhost"], row["queue"]) for row in found_rows
    )


@given(
    keys=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "a", "b\0", "ä", "Z"]), st.text(max_size=2))),
    most=st.sampled_from([1, 1 << 62]),
)
def test_rows_lie_as_arrow_would_sort_them(keys, most):
    """Whatever their names; of equal keys as they came, and however many there may be."""
    blank = dict.fromkeys(QUEUES_1M.names) | dict.fromkeys(("samples", "busy"), 0)
    start = datetime(2026, 3, 1, tzinfo=UTC)
    rows = pa.Table.from_pylist(
        [
            blank | {"minute": start + timedelta(minutes=minute), "vhost": vhost, "queue": queue, "samples": number}
            for number, (minute, vhost, queue) in enumerate(keys)
        ],
        schema=arrow_schema(QUEUES_1M),
    )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_order, "_MAX_RANKS", most)
        found = row_order.sort_by_time(QUEUES_1M, rows)

    assert rows.sort_by([(name, "ascending") for name in QUEUES_1M.key]) == found


def test_rows_of_several_hours_lie_by_object(compacted):
    """A query for a queue skips the others."""
    found_rows = the_file(compacted[0]).read().to_pylist()

    assert 3 * 60 * len(QUEUES) == len(found_rows)
    assert [(row["vhost"], row["queue"], row["minute"]) for row in found_rows] == sorted(
        (row["vhost"], row["queue"], row["minute"]) for row in found_rows
    )


def test_hours_of_a_day_are_read_by_time(compacted):
    """Their content is unchanged: the digests are as before."""
    root, parts = compacted
    transaction = Rollups(root).transaction("shop")

    (it,) = transaction.manifest.files_for("queues_1m")
    assert parts == it.parts
    assert parts == {start: digest(transaction.rows(QUEUES_1M, int(start), int(start) + 1)) for start in parts}


def test_some_minutes_of_a_day_are_replaced(compacted, tmp_path_factory):
    """The same as if they had been replaced before the hours became one file."""
    root, _ = compacted
    late = minutes(1, ready=7).slice(10, 60)
    window = (MIDNIGHT + 1) * 3600 + 600, (MIDNIGHT + 1) * 3600 + 1500
    other = tmp_path_factory.mktemp("other")
    for hour in range(3):
        put(other, hour, minutes(hour))
    found = []
    for folder in (root, other):
        transaction = Rollups(folder).transaction("shop")
        transaction.upsert_ranges(QUEUES_1M, [window], late)
        transaction.commit()
        found.append(
            {start: text for it in transaction.manifest.files_for("queues_1m") for start, text in it.parts.items()}
        )

    assert found[0] == found[1]
    assert [1] == [len(read(root, "shop").files_for("queues_1m"))]


def test_a_queue_is_in_few_row_groups(compacted, monkeypatch):
    """As many hours as fit are put in order together, and what was put in order is cut into groups."""
    monkeypatch.setattr(row_order, "_SORT_ROWS", 400)
    monkeypatch.setattr(row_order, "_ROW_GROUP_BY_OBJECT", 120)
    hours = [row_order.sort_by_time(QUEUES_1M, minutes(hour)) for hour in range(3)]
    file = io.BytesIO()

    assert 540 == row_order.write_rows(file, QUEUES_1M, hours, multi_hour=True)

    footer = pq.ParquetFile(file).metadata
    column = QUEUES_1M.names.index("queue")
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    assert [120, 120, 120, 120, 60] == [group.num_rows for group in groups]
    edges = [(it.column(column).statistics.min, it.column(column).statistics.max) for it in groups]
    assert [("last", "last"), ("first", "first"), ("second", "second")] == edges[:3]
