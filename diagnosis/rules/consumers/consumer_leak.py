"""consumer-leak: a channel gets one more consumer of the same queue again and again, and cancels none.

A handler that subscribes at each reconnect, each message or each pass of a loop leaves its earlier consumers in place.
Each takes a prefetch of its own, and the broker delivers to all of them. Applications that scale up open a channel for
each consumer, or stop at a number.
"""

from collections.abc import Hashable, Iterator
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, Relation, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.holders import consumers_of
from diagnosis.rules.consumers._shared.objects import involved_consumers, process_facts, queue_subject

NAME = "consumer-leak"

_LEAST_RISES = 3
"""Readings in which the number rose: a client that subscribes once, also slowly, stops rising before."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every channel with several consumers."""
    limits = view.thresholds.consumers
    for channel in view.channels:
        if (channel.consumer_count or 0) < limits.leak_least:
            continue
        for queue, counts in _by_queue(view, channel):
            rising, many = _rising(counts), _many(counts, limits.leak_many)
            if rising and rising[-1][1] - rising[0][1] >= limits.leak_least:
                yield from _finding(view, queue, channel, rising)
            elif many and (many[-1][1] > many[0][1] or many[-1][1] >= limits.leak_very_many):
                yield from _finding(view, queue, channel, many)


def _by_queue(view: View, channel: Channel) -> Iterator[tuple[Queue, list[tuple[Instant, int]]]]:
    """Yield each queue that a channel consumes from, with the number of its consumers at each reading."""
    times = [seen.at for seen in view.window.readings("consumers")]
    readings = consumers_of(view, channel)
    for key in sorted({(each.vhost, each.queue) for consumers in readings[-1:] for each in consumers}):
        queue = view.queue(*key)
        if queue is not None:
            numbers = [sum((each.vhost, each.queue) == key for each in consumers) for consumers in readings]
            yield queue, list(zip(times, numbers, strict=True))


def _rising(counts: list[tuple[Instant, int]]) -> list[tuple[Instant, int]]:
    """Return the readings from its first to its last rise, if a number never fell and still rises; else []."""
    start = len(counts) - 1
    while start > 0 and counts[start - 1][1] <= counts[start][1]:
        start -= 1
    tail = counts[start:]
    rises = [place for place, (older, newer) in enumerate(pairwise(tail)) if newer[1] > older[1]]
    goes_on = len(rises) >= _LEAST_RISES and rises[-1] >= len(tail) - 1 - _LEAST_RISES
    return tail[rises[0] : rises[-1] + 2] if goes_on else []


def _many(counts: list[tuple[Instant, int]], least: int) -> list[tuple[Instant, int]]:
    """Return the readings since which a channel has many consumers, and their number never fell and still rises.

    If the number stays the same, those in which it did; [] if there are fewer than two.
    """
    start = len(counts)
    while (
        start > 0
        and counts[start - 1][1] >= least
        and (start == len(counts) or counts[start - 1][1] <= counts[start][1])
    ):
        start -= 1
    tail = counts[start:]
    if len(tail) < 2:
        return []
    rises = [place for place, (older, newer) in enumerate(pairwise(tail)) if newer[1] > older[1]]
    if rises and (rises[-1] < len(tail) - 1 - _LEAST_RISES or _LEAST_RISES * len(rises) < len(tail) - 1):
        # It stopped.
        return tail[rises[-1] + 1 :] if len(tail) - rises[-1] > 2 else []
    return tail


def _finding(view: View, queue: Queue, channel: Channel, rising: list[tuple[Instant, int]]) -> Iterator[Finding]:
    limits = view.limits(queue).consumers
    seconds = rising[-1][0].since(rising[0][0])
    links: list[ConsumerPath] = [each for each in view.links(queue) if each.consumer.channel_name == channel.name]
    if seconds < view.thresholds.early or not links:
        return
    same = rising[-1][1] == rising[0][1]
    late = not same and (seconds >= limits.leak_for or rising[0][1] >= limits.leak_many)
    prefetches = [each.consumer.prefetch_count or 0 for each in links]
    consumer = process_facts(links[0])
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=rising[0][0].iso(),
        facts={
            "queue": queue_facts(queue),
            "client": consumer["client"],
            "consumer": consumer,
            "consumers": rising[-1][1],
            "consumers_before": rising[0][1],
            "same": same,
            "alike": _alike(view, queue),
            "over_seconds": seconds,
            "prefetch_total": None if 0 in prefetches else sum(prefetches),
            "unacked": channel.messages_unacked,
            "warning_after_seconds": limits.leak_for,
        },
        evidence=(
            Evidence(key="consumers", value=rising[-1][1], source=source("/api/consumers")),
            Evidence(
                key="unacked",
                value=channel.messages_unacked,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
        ),
        involved=involved_consumers((queue,), links[:1]),
        certainty=Certainty.CERTAIN
        if late and seconds >= limits.leak_for
        else Certainty.LIKELY
        if late or same
        else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _alike(view: View, queue: Queue) -> int:
    """Return how many channels consume from a queue if each has as many consumers of it; else 0."""
    names = [each.consumer.channel_name for each in view.links(queue)]
    numbers = {names.count(name) for name in names}
    return len(set(names)) if len(numbers) == 1 else 0


def _grows(_view: View, finding: Finding) -> Iterator[Hashable]:
    """Yield the queue of a finding about more and more consumers; as many as before explain nothing."""
    if not finding.facts["same"]:
        yield finding.subject.vhost, finding.subject.name


def _of_queue(_view: View, finding: Finding) -> Iterator[Hashable]:
    yield finding.subject.vhost, finding.subject.name


GETS_MORE = Relation(_grows, _of_queue)
"""The cause is a queue whose channel gets more and more consumers; the effect is about the same queue."""
