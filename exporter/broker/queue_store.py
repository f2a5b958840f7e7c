"""Holds all queues of one broker: their latest totals, joined with the latest statistics of each.

An unchanged queue stays the same object and an unchanged list the same tuple, so 100,000 idle queues cost nothing
downstream.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from exporter.broker.endpoints.queues import QueueKey, decode_totals
from exporter.broker.fields import Gaps, Version
from exporter.broker.interning import Interner, set_details_at

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailCoverage:
    """Number of queues with statistics, and when these were read.

    Attributes:
        queues: number of queues.
        detailed: queues whose statistics were ever read.
        oldest, median: when they were read, in seconds of the monotonic clock; None if never.
    """

    queues: int
    detailed: int
    oldest: float | None = None
    median: float | None = None


_DECODE_BATCH = 1000

REFRESH_SECONDS = 300.0
"""Statistics of an empty queue that are read again unchanged keep their object and `details_at` for this long."""


class QueueStore:
    """Joins totals and statistics. Not thread-safe, except for `count`.

    Attributes:
        changed: queues whose totals differ between the latest two readings, without new queues.
    """

    def __init__(self) -> None:
        self._queues: dict[QueueKey, Queue] = {}
        self._list: tuple[Queue, ...] | None = None
        self._with_gaps: set[QueueKey] = set()
        self._read_at: dict[QueueKey, float] = {}
        self._interner = Interner()
        self.changed: set[QueueKey] = set()

    @property
    def count(self) -> int:
        """Number of queues."""
        return len(self._queues)

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All queues, in the broker's order."""
        if self._list is None:
            self._list = tuple(self._queues.values())
        return self._list

    @property
    def read_at(self) -> Mapping[QueueKey, float]:
        """When the statistics of each queue were last read, in seconds of the monotonic clock."""
        return self._read_at

    def seed(self, queues: Iterable[Queue], at: Instant) -> None:
        """Replace the content by a full reading that was complete at `at`."""
        seeded = (self._interner.intern(replace(queue, details_at=at)) for queue in queues)
        self._queues = {queue.key: queue for queue in seeded}
        self._read_at = dict.fromkeys(self._queues, at.mono)
        self._list = None

    def put_totals(self, payload: Iterable[Any], version: Version | None) -> Gaps:
        """Replace the totals of all queues; a queue that is not in the payload no longer exists.

        Only new and changed items are decoded: on a large broker most queues do not change between two readings.

        Args:
            payload: the items of the broker's list; if iterating raises, the store is unchanged.
            version: version of the broker.
        """
        gaps = Gaps()
        known = self._queues
        updated: dict[QueueKey, Queue | None] = {}
        with_gaps: set[QueueKey] = set()
        changed: set[QueueKey] = set()
        batch: list[Any] = []

        def decode_batch() -> None:
            decoded, found = decode_totals(batch, version)
            if found:
                gaps.update(found)
                with_gaps.update(_keys_with_gaps(batch, version))
            for queue in decoded:
                previous = known.get(queue.key)
                joined = self._join_totals(queue, previous)
                updated[queue.key] = joined
                if previous is not None and joined is not previous:
                    changed.add(queue.key)
            batch.clear()

        differs = False
        for item in payload:
            if not isinstance(item, dict):
                gaps["queues"] += 1
                continue
            key = _key_of(item)
            previous = None if key is None else known.get(key)
            if previous is not None and key not in self._with_gaps and _is_unchanged(item, previous):
                # Use the key of the known object, whose strings are already in memory.
                updated[previous.key] = previous
                continue
            if key is not None:
                # Reserve the position of the queue, to keep the order of the broker.
                updated[key] = None
            batch.append(item)
            differs = True
            if len(batch) >= _DECODE_BATCH:
                decode_batch()
        decode_batch()
        self.changed, self._with_gaps = changed, with_gaps
        if differs or len(updated) != len(known):
            self._queues = {queue.key: queue for queue in updated.values() if queue is not None}
            self._list = None
            read_at = self._read_at
            self._read_at = {
                key: read_at[key]
                for key, queue in self._queues.items()
                if queue.details_at is not None and key in read_at
            }
        return gaps

    def put_details(self, queues: Iterable[Queue], at: Instant) -> None:
        """Add statistics of some queues, read at `at`.

        Queues that are not in the totals yet, or that were deleted and declared again, are skipped.
        """
        for queue in queues:
            key = queue.key
            known = self._queues.get(key)
            if known is None or not _is_same(known, queue):
                continue
            self._read_at[key] = at.mono
            # Messages without progress are a symptom, so diagnosis must see that such a queue was read again.
            if not known.messages and known.details_at is not None and at.since(known.details_at) < REFRESH_SECONDS:
                joined = _joined(queue, known, known.details_at)
                if joined == known:
                    continue
            else:
                joined = _joined(queue, known, at)
            self._queues[key] = set_details_at(self._interner.intern(joined, known), at)
            self._list = None

    def remove(self, key: QueueKey) -> None:
        """Remove a queue that no longer exists."""
        if self._queues.pop(key, None) is not None:
            self._list = None
            self._read_at.pop(key, None)

    def coverage(self) -> DetailCoverage:
        """Return how many queues have statistics, and when these were read."""
        read = self._read_at.values()
        return DetailCoverage(
            queues=len(self._queues),
            detailed=len(read),
            oldest=min(read, default=None),
            median=statistics.median(read) if read else None,
        )

    def _join_totals(self, totals: Queue, previous: Queue | None) -> Queue:
        """Return the queue with new totals; the same object if nothing changed."""
        if previous is None:
            return self._interner.intern(totals)
        if previous.details_at is not None and _is_same(totals, previous):
            joined = _joined(previous, totals, previous.details_at)
        else:
            joined = totals
        return previous if joined == previous else self._interner.intern(joined, previous)


def _joined(details: Queue, totals: Queue, at: Instant) -> Queue:
    """Return a queue with the totals of one reading and everything else of another."""
    # The totals of streams have no message counts in any version from 3.10 to 4.3.
    without_counts = totals.type == "stream" and totals.messages is None
    counts = details if without_counts else totals
    return replace(
        details,
        details_at=at,
        type=totals.type or details.type,
        state=totals.state or details.state,
        node=totals.node or details.node,
        durable=_first(totals.durable, details.durable),
        auto_delete=_first(totals.auto_delete, details.auto_delete),
        # These are null in the totals of quorum queues and streams.
        exclusive=_first(totals.exclusive, details.exclusive),
        arguments=totals.arguments,
        messages=counts.messages,
        messages_ready=counts.messages_ready,
        messages_unacked=counts.messages_unacked,
        leader=totals.leader or details.leader,
        members=_first(totals.members, details.members),
        online=_first(totals.online, details.online),
    )


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one


def _is_same(one: Queue, other: Queue) -> bool:
    """Whether both are readings of the same queue, and not of one that was deleted and declared again."""
    return (
        (one.type == other.type or None in (one.type, other.type))
        and (one.node == other.node or None in (one.node, other.node))
        and (one.durable == other.durable or None in (one.durable, other.durable))
        and (one.arguments == other.arguments or _arguments(one) == _arguments(other))
    )


def _arguments(queue: Queue) -> dict[str, Any]:
    """Return the arguments without the type. If it was not declared, 4.x adds it to totals but not to statistics."""
    return {name: value for name, value in queue.arguments.items() if name != "x-queue-type"}


def _key_of(item: dict[str, Any]) -> QueueKey | None:
    vhost, name = item.get("vhost"), item.get("name")
    return (vhost, name) if isinstance(vhost, str) and isinstance(name, str) else None


def _is_unchanged(item: dict[str, Any], queue: Queue) -> bool:
    """Whether undecoded totals equal the known ones. A fast path without decoding; False is always safe."""
    messages = item.get("messages")
    if messages is None:
        if "messages" in item or queue.type != "stream":
            return False
    elif (
        messages != queue.messages
        or item.get("messages_ready") != queue.messages_ready
        or item.get("messages_unacknowledged") != queue.messages_unacked
    ):
        return False
    online, members = item.get("online"), item.get("members")
    return (
        item.get("state") == queue.state
        and item.get("type") == queue.type
        and item.get("node", queue.node) == queue.node
        and item.get("arguments") == queue.arguments
        and item.get("durable", queue.durable) == queue.durable
        and item.get("leader", queue.leader) == queue.leader
        and (online is None or tuple(online) == queue.online)
        and (members is None or tuple(members) == queue.members)
    )


def _keys_with_gaps(items: list[Any], version: Version | None) -> set[QueueKey]:
    """Return the queues with unusable values. They are decoded every time, so that their gaps are always counted."""
    return {key for item in items if (key := _key_of(item)) is not None and decode_totals([item], version)[1]}
