"""Decides which queues of a large broker get their statistics read first. Pure."""

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from exporter.broker.endpoints.queues import QueueKey

_Entry = tuple[float, float, QueueKey]
"""Urgency, number of messages, queue."""


def suspicious_queues(
    queues: Iterable[Queue],
    read_at: Mapping[QueueKey, float],
    changed: Collection[QueueKey],
    redelivering: Collection[QueueKey],
    now: Instant,
    limit: int,
    *,
    include_unread: bool = True,
    first: int = 0,
) -> list[QueueKey]:
    """Return the suspicious queues, most urgent first.

    There are five signs: a backlog, unacknowledged messages, changed totals, redelivery, and statistics that were never
    read. They take turns in this order. Among queues with the same sign, urgency grows with the age of the
    statistics and with the number of messages.

    Args:
        queues: all queues with their latest totals.
        read_at: when the statistics of each queue were read, in seconds of the monotonic clock; those never read are
            missing.
        changed: queues whose totals changed.
        redelivering: queues whose channels redelivered messages.
        now: reference time for ages.
        limit: maximum number of queues to return.
        first: index of the sign that starts. A caller that reads only a few queues can go on where it stopped.
        include_unread: whether unread statistics are a sign. Not useful while most queues are unread.
    """
    backlog, unacked, moved, redelivered, unread = signs = tuple[list[_Entry], ...]([] for _ in range(5))
    for queue in queues:
        if not (queue.messages_ready or queue.messages_unacked or queue.details_at is None or changed or redelivering):
            continue
        key = queue.key
        age = now.mono - read_at[key] if key in read_at else math.inf
        if queue.messages_ready:
            backlog.append(_entry(age, queue.messages_ready, key))
        if queue.messages_unacked:
            unacked.append(_entry(age, queue.messages_unacked, key))
        if key in changed:
            moved.append(_entry(age, queue.messages or 0, key))
        if key in redelivering:
            redelivered.append(_entry(age, queue.messages or 0, key))
        if include_unread and key not in read_at:
            unread.append(_entry(age, 0, key))
    ranked = [heapq.nlargest(limit, sign) for sign in signs]
    first %= len(ranked)
    return _round_robin([*ranked[first:], *ranked[:first]], limit)


def _entry(age: float, messages: int, key: QueueKey) -> _Entry:
    """Return the entry of a queue. Its urgency is its age, plus once its age for every factor of ten in messages."""
    return (age * (1 + math.log10(1 + messages)), messages, key)


def _round_robin(signs: Iterable[Iterable[_Entry]], limit: int) -> list[QueueKey]:
    def interleaved() -> Iterator[QueueKey]:
        for row in zip_longest(*signs):
            yield from (entry[2] for entry in row if entry is not None)

    # A dict, not a set, because it preserves the order.
    selected: dict[QueueKey, None] = {}
    for key in interleaved():
        if len(selected) >= limit:
            break
        selected[key] = None
    return list(selected)
