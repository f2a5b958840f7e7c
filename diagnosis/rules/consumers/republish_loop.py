"""republish-loop: the consumers of a queue publish to it about as many messages as they acknowledge.

A client that retries by a copy to the same queue acknowledges each message, so the queue looks healthy, and nothing is
ever done. Channels do not say to which queue they publish, but a queue cannot get more than all channels publish. What
it gets beyond the publishes of other clients comes from its own consumers. Dead letters are not counted as published.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Overview, Queue
from diagnosis.churn import churn_increase
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.probe_traffic import probe_traffic
from diagnosis.purpose import CONSUMED
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "republish-loop"

_UNSEEN = 3
"""Channels that may have been opened and closed between two readings, whose publishes are unknown."""
_SHARE = 0.7
"""Share of the acknowledged messages that are published to the queue again."""


@dataclass(frozen=True, slots=True)
class _Publishes:
    """What was published between the first and the last reading of channels.

    Attributes:
        by_owner: (virtual host, name of the client) -> messages; the name of the connection if the client has none.
        total: virtual host -> messages.
        start: time of the first reading (monotonic).
        unseen: channels that were opened and are in no reading, without those of the probes.
    """

    by_owner: dict[tuple[str | None, str | None], int]
    total: dict[str | None, int]
    start: float
    unseen: int


@dataclass(frozen=True, slots=True)
class _Circle:
    """A queue whose consumers publish to it: messages over a time, and the most that it held."""

    history: Series[Queue]
    published: int
    by_others: int
    again: int
    acked: int
    most: int


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers that gets and acknowledges messages."""
    made = per_view(view, _publishes)
    if made is None or made.unseen > _UNSEEN:
        return
    for queue in view.queues:
        if not queue.consumers or queue.type == "stream" or not queue.stats.publish or not view.moved(queue, "ack"):
            continue
        found = _circle(view, queue, made)
        if found is not None:
            yield _finding(view, queue, found)


def _publishes(view: View) -> _Publishes | None:
    readings: Series[tuple[Channel, ...]] = view.window.readings("channels")
    if len(readings) < 2:
        return None
    before = {each.name: each.stats.publish or 0 for each in readings[0].value}
    by_owner: dict[tuple[str | None, str | None], int] = defaultdict(int)
    total: dict[str | None, int] = defaultdict(int)
    opened = 0
    for seen in readings[1:]:
        for channel in seen.value:
            now, was = channel.stats.publish or 0, before.get(channel.name)
            opened += was is None
            if now == was:
                continue
            before[channel.name] = now
            gained = max(0, now - (was or 0))
            by_owner[(channel.vhost, _owner(view, channel.connection_name))] += gained
            total[channel.vhost] += gained
    start = readings[0].at.mono
    overviews: Series[Overview] = view.window.readings("overview")
    inside = [seen.value for seen in overviews if seen.at.mono >= start - 1.0]
    created = churn_increase(inside[0], inside[-1], "channel_created") if len(inside) > 1 else 0
    # The channels of our own probes come and go; what they publish is in queues of their own.
    probes = probe_traffic(view)
    own = math.ceil((probes.closes + probes.connects) * readings[-1].at.since(readings[0].at))
    return _Publishes(by_owner, total, start, created - opened - own)


def _owner(view: View, connection_name: str | None) -> str | None:
    connection = view.connection(connection_name)
    return (connection.client_name if connection else None) or connection_name


def _circle(view: View, queue: Queue, made: _Publishes) -> _Circle | None:
    """Return how a queue's consumers publish to it, if they do with nearly all that they acknowledge."""
    limits = view.limits(queue).consumers
    history = tuple(seen for seen in view.history(queue) if seen.at.mono >= made.start - view.thresholds.interval)
    links = view.links(queue)
    own = {_owner(view, link.consumer.connection_name) for link in links}
    if not links or None in own or len(history) < 2 or span(history) < view.thresholds.early:
        return None
    by_own = sum(made.by_owner.get((queue.vhost, each), 0) for each in own)
    by_others = made.total.get(queue.vhost, 0) - by_own
    published, acked = delta(history, "publish"), delta(history, *CONSUMED)
    # Both are refreshed every 5 s, each at its own time.
    unsure = view.limits(queue).queues.loss_skew * (published + by_others) / span(history)
    again = int(min(published - by_others - unsure, by_own))
    held = [seen.value.messages or 0 for seen in history]
    if min(held) == 0:
        # Messages that go round never leave the queue empty.
        return None
    most = max(held)
    turns = acked >= limits.republish_rounds * max(1, most)
    quick = acked >= limits.republish_rate * span(history)
    if not quick or not turns or again < _SHARE * (acked - unsure):
        return None
    return _Circle(history, published, by_others, again, acked, most)


def _finding(view: View, queue: Queue, found: _Circle) -> Finding:
    limits, links, seconds = view.limits(queue).consumers, view.links(queue), _seen(view, queue, found)
    late = seconds >= limits.republish_for
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=found.history[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": client_names(links),
            "consumer": process_facts(links[0]),
            "acked": found.acked,
            "published": found.published,
            "by_others": found.by_others,
            "again": found.again,
            "most": found.most,
            "rounds": found.acked / max(1, found.most),
            "over_seconds": span(found.history),
            "warning_after_seconds": limits.republish_for,
        },
        evidence=(
            Evidence(
                key="published",
                value=found.published,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="by_others",
                value=found.by_others,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.publish"),
            ),
            Evidence(
                key="acked", value=found.acked, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")
            ),
            Evidence(key="most", value=found.most, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _seen(view: View, queue: Queue, found: _Circle) -> float:
    """Return how long the queue has been as quick; queues are remembered for longer than channels."""
    rate = found.acked / span(found.history)
    history = view.history(queue)
    start = len(history) - 1
    while start > 0:
        pair = history[start - 1 : start + 1]
        if delta(pair, *CONSUMED) < 0.5 * rate * span(pair):
            break
        start -= 1
    return max(span(history[start:]), span(found.history))
