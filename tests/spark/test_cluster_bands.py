"""The whole cluster has bands, too: of sums over its queues, where these are whole."""

from datetime import timedelta

import pyarrow as pa
import pytest

from ackscope.tables import HOURS, QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from pipeline.analysis.baselines import BANDED
from pipeline.analysis.cluster import CLUSTER
from pipeline.analysis.series import FAMILIES
from tests.spark.series_made import START

_HOURLY = HOURS[QUEUES_1M.name]
_END = START + timedelta(minutes=59)


def _row(hour: int, queue: str, **measures) -> dict:
    """One hour of a queue that is there to the end of it."""
    at = START + timedelta(hours=hour)
    usual = {"samples": 120, "minutes": 60, "published": 3600, "delivered": 3600, "acked": 3600, "redelivered": 0}
    levels = {"messages_ready_max": 9, "messages_ready_last": 4, "messages_unacked_max": 3, "messages_unacked_last": 2}
    ends = {"first_minute": at, "last_minute": _END + timedelta(hours=hour)}
    return {
        **dict.fromkeys(_HOURLY.names),
        "hour": at,
        "vhost": "/",
        "queue": queue,
        "consumers_last": 1,
        **usual,
        **levels,
        **ends,
        **measures,
    }


@pytest.fixture(scope="module")
def hours(spark) -> list[dict]:
    """What the sums of six hours are."""
    rows = [
        _row(0, "orders"),
        _row(0, "stock", messages_ready_max=50, published=1800),
        # Never used: its statistics were read, and hold no counter.
        _row(1, "orders"),
        _row(1, "idle", published=None, delivered=None, acked=None, redelivered=None),
        # Its statistics were not read: what it counted is not known, what it holds is.
        _row(2, "orders"),
        _row(2, "unread", consumers_last=None, published=None, delivered=None, acked=None, redelivered=None),
        # Gone before the hour was over: it counted, and holds nothing any more.
        _row(3, "orders"),
        _row(3, "gone", minutes=10, last_minute=START + timedelta(hours=3, minutes=9), messages_ready_last=900),
        # A node is down: what this one holds is not known.
        _row(4, "orders"),
        _row(4, "down", messages_ready_last=None, messages_ready_max=None),
        # The broker counts nothing at all.
        _row(5, "orders", published=None, delivered=None, acked=None, redelivered=None),
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(_HOURLY)))
    return CLUSTER.of_hours(frame).orderBy("at").toArrow().to_pylist()


def test_counts_are_added_up_where_they_are_whole(hours) -> None:
    """A second; a queue that never counted stands still, one that was not read leaves the sum untold."""
    assert [1.5, 1.0, None, 2.0, 2.0, None] == [hour["published"] for hour in hours]


def test_levels_are_of_the_end_of_the_hour(hours) -> None:
    """Over the queues that exist then; null if one of them is unknown."""
    assert [8.0, 8.0, 8.0, 4.0, None, 4.0] == [hour["ready"] for hour in hours]
    assert [4.0, 4.0, 4.0, 2.0, 4.0, 2.0] == [hour["unacked"] for hour in hours]


def test_the_highest_is_the_end_with_the_peak_of_one_queue(hours) -> None:
    """Queues do not peak at the same time."""
    assert [8.0 + 46.0, 8.0 + 5.0] == [hour["ready_high"] for hour in hours[:2]]


def test_it_is_one_object_without_a_name(hours) -> None:
    """Its cluster is in the path of the file; shifts are looked for in single objects alone."""
    assert {("cluster", "", "", "")} == {(it["kind"], it["vhost"], it["name"], it["prefix"]) for it in hours}
    assert CLUSTER in BANDED
    assert CLUSTER not in FAMILIES
