"""All queues of one broker as last told: totals of all of them together, statistics of each when it was its turn.

A queue that did not change stays the same object, and a list without changes the same tuple: 100,000 idle queues cost
nothing to whoever looks at them next.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from exporter.broker.fields import Gaps, Version
from exporter.broker.queues import decode_totals
from exporter.broker.sharing import Common, dated

Key = tuple[str, str]
"""Virtual host and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How well the statistics of single queues are known.

    Attributes:
        queues: all that are known.
        detailed: those whose statistics were read, however long ago.
        oldest, median: seconds of the monotonic clock at which that was; None where it never was.
    """

    queues: int
    detailed: int
    oldest: float | None = None
    median: float | None = None


_AT_ONCE = 1000
"""Queues that are decoded together."""

REFRESH_SECONDS = 300.0
"""Statistics of an empty queue, read again unchanged, stay the same object, `details_at` and all, for so long."""


class QueueStore:
    """Totals and statistics, joined. Belongs to one thread at a time; `count` alone may be asked from another.

    Attributes:
        changed: the queues whose totals were not the same in the latest reading as in the one before; not new ones.
    """

    def __init__(self) -> None:
        self._queues: dict[Key, Queue] = {}
        self._listed: tuple[Queue, ...] | None = None
        self._odd: set[Key] = set()
        self._read_at: dict[Key, float] = {}
        self._common = Common()
        self.changed: set[Key] = set()

    @property
    def count(self) -> int:
        """How many queues are known."""
        return len(self._queues)

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All queues, in the broker's order."""
        if self._listed is None:
            self._listed = tuple(self._queues.values())
        return self._listed

    @property
    def read_at(self) -> Mapping[Key, float]:
        """When the statistics of a queue were really read last, seconds of the monotonic clock."""
        return self._read_at

    def seed(self, queues: Iterable[Queue], at: Instant) -> None:
        """Begin with a full reading of a moment: all statistics are of then."""
        fresh = (self._common.settle(replace(queue, details_at=at)) for queue in queues)
        self._queues = {queue.key: queue for queue in fresh}
        self._read_at = dict.fromkeys(self._queues, at.mono)
        self._listed = None

    def put_totals(self, payload: Iterable[Any], version: Version | None) -> Gaps:
        """Take in the totals of all queues: who is not among them is gone.

        Args:
            payload: the items of the list as the broker sent it; where taking one raises, nothing is taken in. Decoded
                are only those that are new or changed: of most queues of a large broker nothing changes from one
                reading to the next.
            version: of the broker.
        """
        gaps = Gaps()
        known = self._queues
        fresh: dict[Key, Queue | None] = {}
        odd: set[Key] = set()
        changed: set[Key] = set()
        undecoded: list[Any] = []

        def decode() -> None:
            decoded, found = decode_totals(undecoded, version)
            if found:
                gaps.update(found)
                odd.update(_odd_ones(undecoded, version))
            for queue in decoded:
                before = known.get(queue.key)
                after = self._join_totals(queue, before)
                fresh[queue.key] = after
                if before is not None and after is not before:
                    changed.add(queue.key)
            undecoded.clear()

        differs = False
        for item in payload:
            if not isinstance(item, dict):
                gaps["queues"] += 1
                continue
            key = _key_of(item)
            before = None if key is None else known.get(key)
            if before is not None and key not in self._odd and _is_unchanged(item, before):
                # With the texts that are held already.
                fresh[before.key] = before
                continue
            if key is not None:
                # Its place is kept, so that the order is that of the broker.
                fresh[key] = None
            undecoded.append(item)
            differs = True
            if len(undecoded) >= _AT_ONCE:
                decode()
        decode()
        self.changed, self._odd = changed, odd
        if differs or len(fresh) != len(known):
            self._queues = {queue.key: queue for queue in fresh.values() if queue is not None}
            self._listed = None
            read_at = self._read_at
            self._read_at = {
                key: read_at[key]
                for key, queue in self._queues.items()
                if queue.details_at is not None and key in read_at
            }
        return gaps

    def put_details(self, queues: Iterable[Queue], at: Instant) -> None:
        """Take in the statistics of some queues, read at a moment.

        One that the totals do not know yet has its turn once they do; one that was remade meanwhile too.
        """
        for queue in queues:
            key = queue.key
            known = self._queues.get(key)
            if known is None or not _is_same(known, queue):
                continue
            self._read_at[key] = at.mono
            # That a queue with messages stands still is a sign by itself: diagnosis must see that it was read again.
            if not known.messages and known.details_at is not None and at.since(known.details_at) < REFRESH_SECONDS:
                joined = _joined(queue, known, known.details_at)
                if joined == known:
                    continue
            else:
                joined = _joined(queue, known, at)
            self._queues[key] = dated(self._common.settle(joined, known), at)
            self._listed = None

    def drop(self, key: Key) -> None:
        """A queue that is no longer there."""
        if self._queues.pop(key, None) is not None:
            self._listed = None
            self._read_at.pop(key, None)

    def coverage(self) -> Coverage:
        """How well the statistics are known."""
        read = self._read_at.values()
        return Coverage(
            queues=len(self._queues),
            detailed=len(read),
            oldest=min(read, default=None),
            median=statistics.median(read) if read else None,
        )

    def _join_totals(self, queue: Queue, before: Queue | None) -> Queue:
        """What is known of a queue after its totals were read; the very same object where nothing is new."""
        if before is None:
            return self._common.settle(queue)
        if before.details_at is not None and _is_same(queue, before):
            after = _joined(before, queue, before.details_at)
        else:
            after = queue
        return before if after == before else self._common.settle(after, before)


def _joined(details: Queue, totals: Queue, at: Instant) -> Queue:
    """A queue with the totals of one reading and all else of another."""
    # The totals of streams hold no messages in any version from 3.10 to 4.3.
    silent = totals.type == "stream" and totals.messages is None
    counts = details if silent else totals
    return replace(
        details,
        details_at=at,
        type=totals.type or details.type,
        state=totals.state or details.state,
        node=totals.node or details.node,
        durable=_first(totals.durable, details.durable),
        auto_delete=_first(totals.auto_delete, details.auto_delete),
        # Null in the totals of quorum queues and streams.
        exclusive=_first(totals.exclusive, details.exclusive),
        arguments=totals.arguments,
        messages=counts.messages,
        messages_ready=counts.messages_ready,
        messages_unacked=counts.messages_unacked,
        leader=totals.leader or details.leader,
        members=_first(totals.members, details.members),
        online=_first(totals.online, details.online),
    )


def _first(one: Any, other: Any) -> Any:
    return other if one is None else one


def _is_same(one: Queue, other: Queue) -> bool:
    """Whether these are readings of one queue, and not of one that was made anew under the same name."""
    return (
        (one.type == other.type or None in (one.type, other.type))
        and (one.node == other.node or None in (one.node, other.node))
        and (one.durable == other.durable or None in (one.durable, other.durable))
        and (one.arguments == other.arguments or _arguments(one) == _arguments(other))
    )


def _arguments(queue: Queue) -> dict[str, Any]:
    """Without the type: 4.x adds it to the totals of queues that were declared without it, and not to statistics."""
    return {name: value for name, value in queue.arguments.items() if name != "x-queue-type"}


def _key_of(item: dict[str, Any]) -> Key | None:
    vhost, name = item.get("vhost"), item.get("name")
    return (vhost, name) if isinstance(vhost, str) and isinstance(name, str) else None


def _is_unchanged(item: dict[str, Any], queue: Queue) -> bool:
    """Whether the totals in an answer are those that are known: a short way past decoding. False is always right."""
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


def _odd_ones(items: list[Any], version: Version | None) -> set[Key]:
    """Those with something unusable: they are decoded every time, so that it is told every time."""
    return {key for item in items if (key := _key_of(item)) is not None and decode_totals([item], version)[1]}
