"""Snapshots again from recorded rows, as the exporter saw them. Pure.

What one round of polls read is one snapshot. A change table has no row where nothing changed: an object has the values
of its last row, for as long as a row holds (`ackscope.tables.QUEUE_SAMPLES`).
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ackscope.clock import Instant
from ackscope.snapshot import FAMILIES as ALL_FAMILIES
from ackscope.snapshot import Part, Snapshot
from pipeline.backtest.recorded import FAMILIES, FieldReads, RecordedObjects, UnrecordedPart
from pipeline.backtest.rows import RecordedRows, Row

_ROUND = 2_500_000
"""Microseconds within which the readings of one round end: half of the exporter's shortest interval."""


class _Poll(NamedTuple):
    at: int
    family: str
    ok: bool
    took: float | None
    objects: int | None
    reason: str | None


class RecordedSnapshots:
    """The snapshots of one cluster; iterate once.

    Args:
        cluster: its name.
        rows: what was recorded.
        reads: where reads of what was not recorded are noted.

    Attributes:
        known, existing: objects of channels and consumers that were recorded, and that existed, added up over all
            readings; the exporter follows the busiest ones only.
    """

    def __init__(self, cluster: str, rows: RecordedRows, reads: FieldReads) -> None:
        self._cluster, self._rows, self._objects = cluster, rows, RecordedObjects(reads)
        self._unread: dict[str, Part[Any]] = {
            name: UnrecordedPart(name, reads) for name in ALL_FAMILIES if name not in FAMILIES
        }
        self.known = dict.fromkeys(("channels", "consumers"), 0)
        self.existing = dict.fromkeys(("channels", "consumers"), 0)

    def __iter__(self) -> Iterator[Snapshot]:
        parts: dict[str, Part[Any]] = {name: Part() for name in FAMILIES}
        tables = {
            "queues": _ChangeTable(self._rows.samples.get("queues", ()), self._rows.hold, self._queue, keys=2),
            "channels": _ChangeTable(self._rows.samples.get("channels", ()), self._rows.hold, self._channel, keys=1),
            "consumers": _ChangeTable(self._rows.samples.get("consumers", ()), self._rows.hold, self._consumer, keys=4),
        }
        nodes = _NodeTable(self._rows.samples.get("nodes", ()), self._node)
        for polls in _rounds(_polls(self._rows)):
            for poll in polls:
                part = parts[poll.family]
                if not poll.ok:
                    parts[poll.family] = replace(part, error=poll.reason)
                    continue
                value: Any
                if poll.family == "overview":
                    value = self._objects.overview()
                elif poll.family == "nodes":
                    value = nodes.until(poll.at)
                else:
                    value = tables[poll.family].until(poll.at)
                    self._count(poll, len(value))
                parts[poll.family] = Part(value=value, at=_instant(poll.at), seconds=poll.took)
            both: dict[str, Any] = {**parts, **self._unread}
            yield Snapshot(cluster=self._cluster, taken=_instant(polls[-1].at), **both)

    def _count(self, poll: _Poll, known: int) -> None:
        if poll.family in self.known and poll.objects is not None:
            self.known[poll.family] += known
            self.existing[poll.family] += max(poll.objects, known)

    def _queue(self, row: Row) -> Any:
        _, vhost, name, kind, ready, unacked, consumers, *counters, details_at, _ = row
        messages = None if ready is None or unacked is None else ready + unacked
        stats = self._objects.stats_maker("queues")(counters)
        details = None if details_at is None else _instant(details_at)
        return self._objects.maker("queues")((vhost, name, kind, messages, ready, unacked, consumers, stats, details))

    def _channel(self, row: Row) -> Any:
        _, name, connection, vhost, user, node, state, prefetch, consumers, unacked, unconfirmed, *counters, _ = row
        stats = self._objects.stats_maker("channels")(counters)
        return self._objects.maker("channels")(
            (name, connection, vhost, user, node, state, prefetch, consumers, unacked, unconfirmed, stats)
        )

    def _consumer(self, row: Row) -> Any:
        _, vhost, queue, tag, channel, *rest, _ = row
        return self._objects.maker("consumers")((vhost, queue, tag, channel or None, *rest))

    def _node(self, row: Row) -> Any:
        *values, partitions, uptime = row[1:]
        # Their names are not recorded, only how many there are.
        others = None if partitions is None else tuple(f"node {it + 1}" for it in range(partitions))
        return self._objects.maker("nodes")((*values, others, uptime))


class _ChangeTable:
    """Objects by their last rows."""

    def __init__(self, rows: Sequence[Row], hold: int, make: Any, keys: int) -> None:
        self._rows, self._hold, self._make, self._keys = rows, hold, make, keys
        self._next = 0
        self._objects: dict[Row, Any] = {}
        self._values: dict[Row, Row] = {}
        self._latest: OrderedDict[Row, int] = OrderedDict()
        self._tuple: tuple[Any, ...] = ()

    def until(self, at: int) -> tuple[Any, ...]:
        """Return the objects at a reading; call it in order of time. Unchanged objects are the same as before."""
        changed = False
        while self._next < len(self._rows) and self._rows[self._next][0] <= at:
            row = self._rows[self._next]
            self._next += 1
            key, values = row[1 : 1 + self._keys], row[1:]
            if row[-1]:
                changed |= self._drop(key)
                continue
            self._latest[key] = row[0]
            self._latest.move_to_end(key)
            if self._values.get(key) != values:
                self._values[key], self._objects[key] = values, self._make(row)
                changed = True
        while self._latest and next(iter(self._latest.values())) < at - self._hold:
            changed |= self._drop(next(iter(self._latest)))
        if changed:
            self._tuple = tuple(self._objects.values())
        return self._tuple

    def _drop(self, key: Row) -> bool:
        self._latest.pop(key, None)
        self._values.pop(key, None)
        return self._objects.pop(key, None) is not None


class _NodeTable:
    """Nodes, which have a row each at every reading that was recorded."""

    def __init__(self, rows: Sequence[Row], make: Any) -> None:
        self._rows, self._make, self._next = rows, make, 0

    def until(self, at: int) -> tuple[Any, ...]:
        found: list[Row] = []
        while self._next < len(self._rows) and self._rows[self._next][0] <= at:
            row = self._rows[self._next]
            self._next += 1
            if found and found[-1][0] != row[0]:
                found.clear()
            found.append(row)
        return tuple({row[1]: self._make(row) for row in found}.values())


def _polls(rows: RecordedRows) -> list[_Poll]:
    """Return every reading: those with a row of their own, and those that only have rows of objects."""
    polls = {
        (row[0], row[1]): _Poll(row[0], row[1], bool(row[2]), row[3], row[5], row[8])
        for row in rows.polls
        # A reading of nodes is recorded at most every 15 s: only one with rows is known.
        if row[1] in FAMILIES and not (row[1] == "nodes" and row[2])
    }
    for family, samples in rows.samples.items():
        for at in {row[0] for row in samples}:
            polls.setdefault((at, family), _Poll(at, family, ok=True, took=None, objects=None, reason=None))
    return sorted(polls.values(), key=lambda it: (it.at, it.family))


def _rounds(polls: Sequence[_Poll]) -> Iterator[list[_Poll]]:
    """Group readings that ended together; a family is read once in a round."""
    current: list[_Poll] = []
    for poll in polls:
        if current and (poll.at - current[0].at > _ROUND or any(it.family == poll.family for it in current)):
            yield current
            current = []
        current.append(poll)
    if current:
        yield current


def _instant(micros: int) -> Instant:
    seconds = micros / 1_000_000
    return Instant(wall=seconds, mono=seconds)
