"""Tests of recorded objects and rows: what the history has, and what it says about the rest."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ackscope.tables import NODES_1M, POLLS_1M, QUEUES_1M, Column, Kind, Table
from ackscope.tables.arrow import arrow_schema
from exporter.landing import shapes
from pipeline.backtest.recorded import COUNTERS, HELD, FieldReads, RecordedObjects
from pipeline.backtest.rows import of_minutes
from pipeline.backtest.snapshots import RecordedSnapshots

SHAPES = {
    "queues": shapes.QUEUES,
    "channels": shapes.CHANNELS,
    "consumers": shapes.CONSUMERS,
    "nodes": shapes.NODES,
}


@pytest.mark.parametrize("family", sorted(SHAPES))
def test_held_fields_are_those_that_land(family):
    """The exporter lands exactly the fields that a replay takes for known; the sum of messages follows from two."""
    landed = {path.partition(".")[0] for path in SHAPES[family].fields.values()}
    counters = [path.removeprefix("stats.") for path in SHAPES[family].fields.values() if path.startswith("stats.")]

    assert landed == set(HELD[family]) - {"messages"}
    assert counters == list(COUNTERS.get(family, ()))


def test_absent_field_has_its_default_and_is_noted():
    """Nothing is noted between rules."""
    reads = FieldReads()
    objects = RecordedObjects(reads)
    stats = objects.stats_maker("queues")((10, 8, 7, 1))
    queue = objects.maker("queues")(("/", "orders", "classic", 5, 3, 2, 1, stats, None))

    assert queue.arguments == {}

    reads.rule = "no-consumer"

    assert queue.setting("max-length") is None
    assert (queue.messages_ready, queue.stats.publish) == (3, 10)
    assert reads.found == {"no-consumer": {"queues.arguments", "queues.effective_policy"}}


def test_deliveries_stand_for_those_to_consumers():
    """Only their sum is recorded; that they are taken for it is noted."""
    reads = FieldReads()
    stats = RecordedObjects(reads).stats_maker("queues")((10, 8, 7, 1))
    reads.rule = "slow-consumer"

    assert stats.deliver == 8
    assert stats.all_counters() == (10, 8, 7, 1)
    assert reads.found == {"slow-consumer": {"queues.message_stats.deliver"}}


def test_equal_objects_are_those_with_equal_recorded_values():
    """So that a window shares them."""
    objects = RecordedObjects(FieldReads())
    values = ("/", "orders", "classic", 5, 3, 2, 1, None, None)

    assert objects.maker("queues")(values) == objects.maker("queues")(values)
    assert objects.maker("queues")(values) != objects.maker("queues")((*values[:4], 4, *values[5:]))


def _minutes(table: Table, rows: list[dict]) -> pa.Table:
    """Rows of minutes; what is not given is null or zero."""
    return pa.Table.from_pylist(
        [{column.name: _zero(column) for column in table.columns} | row for row in rows], schema=arrow_schema(table)
    )


def _zero(column: Column) -> object:
    return None if column.nullable else {Kind.INT: 0, Kind.FLOAT: 0.0, Kind.STRING: ""}.get(column.kind)


def test_minutes_become_readings_at_their_end():
    """Levels are the last of the minute; counters add up, also over a minute without levels."""

    def minute(number: int) -> datetime:
        return datetime(2026, 3, 1, 0, number, tzinfo=UTC)

    queue = {"vhost": "/", "queue": "orders", "samples": 12, "messages_ready_last": 4, "messages_unacked_last": 1}
    rows = of_minutes(
        {
            QUEUES_1M: _minutes(
                QUEUES_1M,
                [
                    queue | {"minute": minute(0), "published": 10, "consumers_last": 1},
                    {"minute": minute(1), "vhost": "/", "queue": "orders", "samples": 0, "published": 5},
                    queue | {"minute": minute(2), "published": 7, "consumers_last": 0},
                ],
            ),
            NODES_1M: _minutes(NODES_1M, [{"minute": minute(2), "node": "rabbit@one", "samples": 4, "down": 1}]),
            POLLS_1M: _minutes(
                POLLS_1M,
                [{"minute": minute(number), "family": "queues", "reads": 12} for number in range(3)],
            ),
        }
    )
    snapshots = list(RecordedSnapshots("shop", rows, FieldReads()))
    queues = [snapshot.queues.value for snapshot in snapshots]

    assert [it.taken.wall for it in snapshots] == [minute(number + 1).timestamp() for number in range(3)]
    assert [len(it) for it in queues] == [1, 0, 1]
    assert (queues[2][0].stats.publish, queues[2][0].messages, queues[2][0].consumers) == (22, 5, 0)
    assert [it.running for it in snapshots[2].nodes.value] == [False]
