"""How the consumers of a queue changed from reading to reading."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import is_
from typing import TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import Consumer, Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.window import Series

K = TypeVar("K")

QueueKey = tuple[str, str]
"""Virtual host and name of a queue."""


@dataclass(frozen=True, slots=True)
class ConsumerTurnover:
    """How the consumers of one queue changed over the latest readings.

    Attributes:
        changes: readings whose consumers differ from those of the reading before.
        comparisons: pairs of readings that were compared.
        consumers: every consumer that came or went: it is not in all readings.
        max_at_once: the most of them in one reading.
        beside: consumers that are in all readings.
        seconds, since: the time that the readings cover.
    """

    queue: Queue
    changes: int
    comparisons: int
    consumers: tuple[Consumer, ...]
    max_at_once: int
    beside: int
    seconds: float
    since: Instant


def changed_queues(readings: Series[tuple[Consumer, ...]]) -> set[QueueKey]:
    """Return the queues whose consumers changed; unchanged consumers are the same objects in each reading."""
    found: set[QueueKey] = set()
    for older, newer in pairwise(readings):
        if _same_objects(older.value, newer.value):
            continue
        before, after = {id(each) for each in older.value}, {id(each) for each in newer.value}
        found |= {(each.vhost, each.queue) for each in older.value if id(each) not in after}
        found |= {(each.vhost, each.queue) for each in newer.value if id(each) not in before}
    return found


def consumers_by_reading(view: View, queue: Queue) -> list[list[Consumer]]:
    """Return the consumers of a queue in each reading of consumers, oldest first."""
    return [consumers.get(queue.key, []) for consumers in per_view(view, _by_queue)]


def _by_queue(view: View) -> list[dict[QueueKey, list[Consumer]]]:
    found = grouped_by_reading(view, lambda each: (each.vhost, each.queue))
    # A busy broker lists a new consumer before it knows its channel. It is the one of the same tag that has a channel.
    listed = {id(consumers): consumers for group in found for consumers in group.values()}.values()
    named = {_tag(each): each for consumers in listed for each in consumers if each.channel_name}
    for consumers in listed:
        consumers[:] = [each if each.channel_name else named.get(_tag(each), each) for each in consumers]
    return found


def _tag(consumer: Consumer) -> tuple[str, str, str]:
    return (consumer.vhost, consumer.queue, consumer.tag)


def grouped_by_reading(view: View, key: Callable[[Consumer], K]) -> list[dict[K, list[Consumer]]]:
    """Return the consumers by a key in each reading of consumers; equal readings share one dictionary."""
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    found: list[dict[K, list[Consumer]]] = []
    for place, seen in enumerate(readings):
        if place and _same_objects(readings[place - 1].value, seen.value):
            found.append(found[-1])
            continue
        grouped: dict[K, list[Consumer]] = defaultdict(list)
        for each in seen.value:
            grouped[key(each)].append(each)
        found.append(grouped)
    return found


def _same_objects(older: tuple[Consumer, ...], newer: tuple[Consumer, ...]) -> bool:
    return len(older) == len(newer) and all(map(is_, older, newer))


def consumer_turnover(view: View, queue: Queue) -> ConsumerTurnover:
    """Return how the consumers of a queue changed over the readings of consumers."""
    readings = view.window.readings("consumers")
    by_reading = [{identity(each): each for each in consumers} for consumers in consumers_by_reading(view, queue)]
    everyone: dict[tuple[str, str], Consumer] = {}
    for each in by_reading:
        everyone.update(each)
    lasting = set.intersection(*(set(each) for each in by_reading)) if len(by_reading) > 1 else set()
    return ConsumerTurnover(
        queue=queue,
        changes=sum(older.keys() != newer.keys() for older, newer in pairwise(by_reading)),
        comparisons=len(by_reading) - 1,
        consumers=tuple(everyone[key] for key in sorted(everyone.keys() - lasting)),
        max_at_once=max(len(each) for each in by_reading) - len(lasting),
        beside=len(lasting),
        seconds=readings[-1].at.since(readings[0].at),
        since=readings[0].at,
    )


def identity(consumer: Consumer) -> tuple[str, str]:
    """Return what tells a consumer from all others: its channel and its tag."""
    return (consumer.channel_name or "", consumer.tag)
