"""Recorded rows in one form, whether they are landing rows or minutes. Pure.

Rows are tuples in the order of the landing table, sorted by time; times are microseconds since 1970. A minute becomes
one reading at its end: its last levels, and counters that start at zero with the first minute given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa

from ackscope.tables import (
    CHANNEL_SAMPLES,
    CHANNELS_1M,
    CONSUMER_SAMPLES,
    CONSUMERS_1M,
    HEARTBEAT,
    NODE_SAMPLES,
    NODES_1M,
    POLL_SAMPLES,
    POLLS_1M,
    QUEUE_SAMPLES,
    QUEUES_1M,
    Table,
)

SAMPLES: dict[str, Table] = {
    "queues": QUEUE_SAMPLES,
    "channels": CHANNEL_SAMPLES,
    "consumers": CONSUMER_SAMPLES,
    "nodes": NODE_SAMPLES,
}
"""Family -> the landing table with its rows."""

MINUTES_OF: dict[Table, Table] = {
    QUEUE_SAMPLES: QUEUES_1M,
    CHANNEL_SAMPLES: CHANNELS_1M,
    CONSUMER_SAMPLES: CONSUMERS_1M,
    NODE_SAMPLES: NODES_1M,
    POLL_SAMPLES: POLLS_1M,
}

_MINUTE = 60_000_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """What was recorded of one cluster for some time.

    Attributes:
        samples: family -> rows in the order of its landing table.
        polls: rows of `poll_samples`.
        hold: microseconds that a row of queues, channels and consumers holds without another one.
    """

    samples: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    polls: Sequence[Row] = ()
    hold: int = round(HEARTBEAT * 1_000_000)

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.polls) + sum(map(len, self.samples.values()))


def of_landing(tables: Mapping[Table, pa.Table]) -> RecordedRows:
    """Return landing rows; a table that is not given has none."""
    rows = {table: sorted(_rows(table, given), key=itemgetter(0)) for table, given in tables.items()}
    return RecordedRows({name: rows.get(it, []) for name, it in SAMPLES.items()}, rows.get(POLL_SAMPLES, []))


def of_minutes(tables: Mapping[Table, pa.Table]) -> RecordedRows:
    """Return rows of minutes, each as one reading at the end of its minute."""
    given = {
        source: sorted(_dicts(minutes, tables.get(minutes)), key=itemgetter("minute"))
        for source, minutes in MINUTES_OF.items()
    }
    samples = {
        "queues": list(_queues(given[QUEUE_SAMPLES])),
        "channels": list(_channels(given[CHANNEL_SAMPLES])),
        "consumers": [_consumer(it) for it in given[CONSUMER_SAMPLES] if it["samples"]],
        "nodes": [_node(it) for it in given[NODE_SAMPLES]],
    }
    return RecordedRows(samples, [row for it in given[POLL_SAMPLES] for row in _polls(it)], hold=0)


def _rows(table: Table, given: pa.Table) -> Iterator[Row]:
    return zip(*(_values(given[name]) for name in table.names), strict=True)


def _dicts(table: Table, given: pa.Table | None) -> Iterator[dict[str, Any]]:
    if given is None:
        return iter(())
    names = table.names
    return (dict(zip(names, row, strict=True)) for row in _rows(table, given))


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values


class _Totals:
    """Counters again from their increases."""

    def __init__(self) -> None:
        self._known: dict[Any, list[int | None]] = {}

    def add(self, key: Any, increases: Iterable[int | None]) -> list[int | None]:
        grown = [
            before if more is None else (before or 0) + more
            for before, more in zip(self._known.get(key, [None] * 5), increases, strict=False)
        ]
        self._known[key] = grown
        return grown


def _queues(minutes: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    totals = _Totals()
    for it in minutes:
        counters = totals.add(
            (it["vhost"], it["queue"]), (it["published"], it["delivered"], it["acked"], it["redelivered"])
        )
        if it["samples"]:
            levels = (it["messages_ready_last"], it["messages_unacked_last"], it["consumers_last"])
            yield (_end(it), it["vhost"], it["queue"], it["queue_type"], *levels, *counters, None, False)


def _channels(minutes: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    totals = _Totals()
    for it in minutes:
        names = ("published", "confirmed", "delivered", "acked", "redelivered")
        counters = totals.add(it["channel"], (it[name] for name in names))
        if it["samples"]:
            owner = (it["channel"], it["connection"], it["vhost"], it["user"], it["node"])
            levels = (None, it["prefetch_last"], None, it["unacked_last"], it["unconfirmed_last"])
            yield (_end(it), *owner, *levels, *counters, False)


def _consumer(it: Mapping[str, Any]) -> Row:
    owner = (it["vhost"], it["queue"], it["tag"], it["channel"], it["connection"], it["user"], it["node"])
    return (_end(it), *owner, it["prefetch_last"], it["automatic"] == 0, it["inactive"] == 0, None, False)


def _node(it: Mapping[str, Any]) -> Row:
    flags = (not it["down"], it["drained"] > 0)
    memory = (it["mem_used_last"], it["mem_limit_last"], it["mem_alarms"] > 0)
    disk = (it["disk_free_last"], it["disk_free_limit_last"], it["disk_alarms"] > 0)
    files = (it["fd_used_max"], it["fd_total_last"], it["sockets_used_max"], it["sockets_total_last"])
    rest = (it["proc_used_max"], it["proc_total_last"], it["run_queue_max"], it["partitions_max"], it["uptime_min"])
    return (_end(it), it["node"], *flags, *memory, *disk, *files, *rest)


def _polls(it: Mapping[str, Any]) -> Iterator[Row]:
    if it["reads"]:
        yield (_end(it), it["family"], True, None, 0.0, it["objects_last"], it["gaps"], it["wholes"] > 0, None)
    elif it["failures"]:
        yield (_end(it), it["family"], False, None, it["age_max"], None, None, False, "it could not be read")


def _end(it: Mapping[str, Any]) -> int:
    return int(it["minute"]) + _MINUTE
