"""Which queues deserve their full statistics first, when there is not time for all. Pure."""

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Consumer, Queue

Key = tuple[str, str]
"""Virtual host and name."""


def suspects(
    queues: Iterable[Queue],
    read_at: Mapping[Key, float],
    changed: Collection[Key],
    named: Collection[Key],
    now: Instant,
    most: int,
    *,
    unknown: bool = True,
    first: int = 0,
) -> list[Key]:
    """The queues to look at, the most urgent first.

    There are five signs: a backlog, unacknowledged messages, totals that changed, a redelivery, and that nothing is
    known yet. Each has its turn, in this order; under one sign the longest unseen go first, and of those the largest.

    Args:
        queues: all queues with their latest totals.
        read_at: when the statistics of each were read, seconds of the monotonic clock; without those that never were.
        changed: those whose totals changed.
        named: those that consumers or channels give a sign of redelivery for.
        now: ages are counted to here.
        most: how many to name.
        first: which sign begins; for who can look at a few only and goes on where it stopped.
        unknown: whether never to have been looked at is a sign: it is none where that is so of most.
    """
    backlog, unacked, moved, redelivered, unseen = signs = tuple[list[tuple[float, float, Key]], ...](
        [] for _ in range(5)
    )
    for queue in queues:
        if not (queue.messages_ready or queue.messages_unacked or queue.details_at is None or changed or named):
            continue
        key = queue.key
        age = now.mono - read_at[key] if key in read_at else math.inf
        if queue.messages_ready:
            backlog.append(_urgency(age, queue.messages_ready, key))
        if queue.messages_unacked:
            unacked.append(_urgency(age, queue.messages_unacked, key))
        if key in changed:
            moved.append(_urgency(age, queue.messages or 0, key))
        if key in named:
            redelivered.append(_urgency(age, queue.messages or 0, key))
        if unknown and key not in read_at:
            unseen.append(_urgency(age, 0, key))
    turns = [heapq.nlargest(most, sign) for sign in signs]
    first %= len(turns)
    return _in_turn([*turns[first:], *turns[:first]], most)


def redelivering(
    before: Mapping[str, int], channels: Iterable[Channel], consumers: Iterable[Consumer]
) -> tuple[dict[str, int], frozenset[Key]]:
    """The queues that consumers take from on channels where messages were redelivered since a reading before.

    Args:
        before: channel name -> its counter of redeliveries in the reading before.
        channels: as they are now.
        consumers: as they are now.

    Returns:
        channel name -> its counter now, and the queues.
    """
    counters = {channel.name: channel.stats.redeliver for channel in channels if channel.stats.redeliver is not None}
    grown = {name for name, count in counters.items() if count > before.get(name, 0)}
    named = frozenset((it.vhost, it.queue) for it in consumers if it.channel_name in grown) if grown else frozenset()
    return counters, named


def _urgency(age: float, amount: int, key: Key) -> tuple[float, float, Key]:
    """The longer unseen the more, and ten times the messages count as one more time that age."""
    return (age * (1 + math.log10(1 + amount)), amount, key)


def _in_turn(signs: Iterable[Iterable[tuple[float, float, Key]]], most: int) -> list[Key]:
    def one_by_one() -> Iterator[Key]:
        for row in zip_longest(*signs):
            yield from (entry[2] for entry in row if entry is not None)

    # A dict, not a set: it keeps the order.
    chosen: dict[Key, None] = {}
    for key in one_by_one():
        if len(chosen) >= most:
            break
        chosen[key] = None
    return list(chosen)
