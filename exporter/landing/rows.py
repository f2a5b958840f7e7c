"""Records and snapshots as rows of the landing tables, and rows as Arrow tables. Pure."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from ackscope.records import AckBurst, MessageRecord, StepRecord
from ackscope.snapshot import Queue, Snapshot
from ackscope.tables import ACK_BURSTS, PROBE_MESSAGES, PROBE_STEPS, QUEUE_SAMPLES, Kind, Table

_TYPES = {
    Kind.STRING: pa.string(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}


class Row(NamedTuple):
    """One row and the folder it belongs to.

    Attributes:
        date: UTC date of the row's own time, `YYYY-MM-DD`.
        values: in the order of the table's columns; times as microseconds since 1970.
    """

    cluster: str
    date: str
    values: tuple[Any, ...]


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns as Arrow sees them."""
    return pa.schema([pa.field(it.name, _TYPES[it.kind], nullable=it.nullable) for it in table.columns])


def arrow_table(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table with exactly the declared schema."""
    schema = arrow_schema(table)
    columns = zip(*(row.values for row in rows), strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


# Records bear the same names as the columns of their table; the first column is the time.
_MESSAGE = attrgetter(*PROBE_MESSAGES.names)
_BURST = attrgetter(*ACK_BURSTS.names)
_STEP = attrgetter(*PROBE_STEPS.names)

_QUEUE: dict[str, Callable[[Queue], Any]] = {
    "vhost": lambda queue: queue.vhost,
    "queue": lambda queue: queue.name,
    "queue_type": lambda queue: queue.type,
    "messages_ready": lambda queue: queue.messages_ready,
    "messages_unacked": lambda queue: queue.messages_unacked,
    "consumers": lambda queue: queue.consumers,
    "publish": lambda queue: queue.stats.publish,
    "deliver": lambda queue: queue.stats.deliver_get,
    "ack": lambda queue: queue.stats.ack,
    "redeliver": lambda queue: queue.stats.redeliver,
}
_QUEUE_READS = tuple(_QUEUE[name] for name in QUEUE_SAMPLES.names[1:])


def message_rows(cluster: str, records: Iterable[MessageRecord]) -> list[Row]:
    """Rows of `probe_messages`."""
    return [_row(cluster, *_MESSAGE(record)) for record in records]


def burst_rows(cluster: str, bursts: Iterable[AckBurst]) -> list[Row]:
    """Rows of `ack_bursts`."""
    return [_row(cluster, *_BURST(burst)) for burst in bursts]


def step_rows(cluster: str, steps: Iterable[StepRecord]) -> list[Row]:
    """Rows of `probe_steps`."""
    return [_row(cluster, *_STEP(step)) for step in steps]


def queue_rows(snapshot: Snapshot, own_prefixes: Sequence[str]) -> list[Row]:
    """Rows of `queue_samples`: one a queue, without the probes' own; none where queues were never read."""
    part = snapshot.queues
    if part.value is None or part.at is None:
        return []
    at, own = part.at.wall, tuple(own_prefixes)
    return [
        _row(snapshot.cluster, at, *(read(queue) for read in _QUEUE_READS))
        for queue in part.value
        if not queue.name.startswith(own)
    ]


def _row(cluster: str, wall: float, *values: Any) -> Row:
    return Row(cluster, _date(wall), (_micros(wall), *values))


def _micros(wall: float) -> int:
    return round(wall * 1_000_000)


def _date(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d")
