"""delivered-twice: two queues get each message by the same binding, and one channel consumes from both.

An exchange copies a message to each queue whose binding matches. Two queues are meant for two applications. Where one
channel consumes from both, its application processes each message twice, as after a rename of a queue whose old binding
was kept. Two tasks of one program that need a copy each look the same, so it is information.
Source: https://www.rabbitmq.com/tutorials/amqp-concepts#exchanges
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from ackscope.findings import Certainty, Evidence, ExchangeRef, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.rules.consumers._shared.objects import client_names, queue_subject
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "delivered-twice"

_LEAST = 20
"""Messages that each of two queues must have got while they were watched."""
_APART = 2
"""Messages by which the counters of two queues may differ: they are refreshed one after the other."""
_MOST = 20
"""Queues of one binding that are compared: more are subscriptions of many clients."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare the queues that have a binding in common and are consumed by the same channels."""
    alike: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for binding in view.bindings or ():
        if binding.destination_type == "queue" and binding.source:
            alike[binding.vhost, binding.source, binding.routing_key].append(binding.destination)
    reported: set[tuple[str, str]] = set()
    for (vhost, exchange, key), names in sorted(alike.items()):
        if not 2 <= len(names) <= _MOST:
            continue
        queues = [each for name in dict.fromkeys(names) if (each := view.queue(vhost, name)) is not None]
        for one, other in combinations(sorted(queues, key=lambda each: each.name), 2):
            if one.key not in reported and other.key not in reported and _same_channels(view, one, other):
                twice = _together(view, one, other)
                if twice is not None:
                    reported |= {one.key, other.key}
                    yield _finding(view, one, other, exchange, key, twice)


def _same_channels(view: View, one: Queue, other: Queue) -> bool:
    """Return whether exactly the same channels consume from two queues that have the same settings."""
    channels, others = ({link.consumer.channel_name for link in view.links(queue)} for queue in (one, other))
    same = one.type == other.type and one.arguments == other.arguments and one.type != "stream"
    return same and bool(channels) and None not in channels and channels == others


def _together(view: View, one: Queue, other: Queue) -> tuple[Series[Queue], Series[Queue]] | None:
    """Return the readings of two queues that got as many messages as each other in each of them; None if not."""
    series = view.history(one)
    by_time = {seen.at.mono: seen for seen in view.history(other)}
    both = [(seen, by_time[seen.at.mono]) for seen in series if seen.at.mono in by_time]
    first, second = tuple(each for each, _ in both), tuple(each for _, each in both)
    came, copies = delta(first, "publish"), delta(second, "publish")
    if min(came, copies) < _LEAST or abs(came - copies) > _APART:
        return None
    for place in range(1, len(both)):
        # The difference must not grow in between: two flows of the same rate are not the same messages.
        apart = delta(first[: place + 1], "publish") - delta(second[: place + 1], "publish")
        if abs(apart) > max(_APART, 0.02 * came):
            return None
    return first, second


def _finding(
    view: View, one: Queue, other: Queue, exchange: str, key: str, twice: tuple[Series[Queue], Series[Queue]]
) -> Finding:
    came, seconds = delta(twice[0], "publish"), span(twice[0])
    links = view.links(one)
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=queue_subject(one),
        facts={
            "queue": queue_facts(one),
            "other": queue_facts(other),
            "exchange": exchange,
            "routing_key": key,
            "clients": client_names(links),
            "came": came,
            "over_seconds": seconds,
        },
        evidence=(
            Evidence(
                key="published",
                value=came,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish") + source("/api/bindings"),
            ),
            Evidence(key="consumers", value=len(links), source=source("/api/consumers", "channel_details.name")),
        ),
        involved=Involved(
            queues=(queue_ref(one), queue_ref(other)),
            exchanges=(ExchangeRef(one.vhost, exchange),),
            channels=tuple(sorted({link.consumer.channel_name for link in links if link.consumer.channel_name})),
            clients=tuple(client_names(links)),
        ),
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
    )
