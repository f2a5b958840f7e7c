"""prefetch-hoarder (B05): a consumer without a prefetch limit holds nearly all messages of a queue; others get none.

The queue looks empty and its consumer capacity looks perfect. The messages are in the memory of one client, and all of
them are redelivered when it ends. Within a prefetch limit, a slow consumer does the same on a smaller scale: what it
was sent waits behind its work, while others have nothing to do. A missing limit is also a risk by itself: one finding
per virtual host lists such consumers.
Source: https://www.rabbitmq.com/docs/consumer-prefetch
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import client_name, consumer_facts, queue_facts
from diagnosis.hold_time import QUORUM_MOST, prefetch
from diagnosis.rules.consumers._shared.objects import (
    client_names,
    involved_consumers,
    preferred_priority,
    process_facts,
    queue_subject,
)
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series

NAME = "prefetch-hoarder"

_LEAST_HELD, _QUICKER = 10, 10
"""Messages that a slow consumer must hold, and how many times quicker others must process theirs."""

_HOARD_FACTS = (
    "queue", "hoarder", "unacked", "queue_unacked", "ready", "acked", "prefetch", "starving_consumers",
    "max_work_seconds", "warning_after_seconds", "priority",
)  # fmt: skip
"""Facts about one queue; they are None in the finding about a virtual host."""


@dataclass(frozen=True, slots=True)
class Hoard:
    """One consumer that holds too many messages of a queue.

    Attributes:
        unacked: messages that it holds.
        acked: messages that it acknowledged in `seconds`.
        starving: other consumers, which hold nothing.
        full: the readings during which too many messages were held.
    """

    queue: Queue
    link: ConsumerPath
    unacked: int
    acked: int
    seconds: float
    starving: tuple[ConsumerPath, ...]
    full: Series[Queue]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with very many unacknowledged messages, then list the consumers without a limit."""
    hoards = [hoard for queue in view.queues for hoard in _hoards(view, queue)]
    yield from (_finding(view, hoard) for hoard in hoards)
    reported = {hoard.queue.key for hoard in hoards}
    risks: dict[str, list[tuple[Queue, ConsumerPath]]] = defaultdict(list)
    for queue in view.queues:
        if not queue.consumers or queue.exclusive or queue.auto_delete or queue.type == "stream":
            continue
        if queue.key in reported:
            continue
        unlimited = (each for each in view.links(queue) if each.consumer.ack_required and _is_unlimited(view, each))
        risks[queue.vhost] += [(queue, link) for link in unlimited if view.moved(queue, "deliver")]
    yield from (_risk(vhost, found) for vhost, found in sorted(risks.items()) if found)


def _is_unlimited(view: View, link: ConsumerPath) -> bool:
    """Return whether a consumer has no limit of its own, and shares none with the others of its channel."""
    shared = link.channel is not None and bool(link.channel.global_prefetch_count)
    return prefetch(view, link) == 0 and not shared


def _hoards(view: View, queue: Queue) -> Iterator[Hoard]:
    limits = view.limits(queue)
    much, unacked = limits.consumers.hoard_messages, queue.messages_unacked or 0
    if unacked <= much:
        yield from _slow_among_quick(view, queue)
        return
    full = stretch(view.history(queue), lambda older, newer: _above(older.value, much) and _above(newer.value, much))
    if span(full) < limits.early:
        return
    for link in view.links(queue):
        holds = (link.channel.messages_unacked or 0) if link.channel else 0
        allowed = prefetch(view, link)
        limited = allowed is None or 0 < allowed <= much
        if link.channel is None or limited or link.consumer.ack_required is False:
            continue
        alone = view.queues_served(link.channel.name) == 1
        if not alone or holds <= much or holds < limits.consumers.hoard_share * unacked:
            continue
        history = view.channel_history(link.channel.name)
        acked, seconds = delta(history, "ack"), span(history)
        if acked and seconds and holds / (acked / seconds) < limits.consumers.hoard_work:
            continue
        others = (each for each in view.links(queue) if each is not link and each.channel is not None)
        starving = tuple(each for each in others if each.channel and each.channel.messages_unacked == 0)
        yield Hoard(queue, link, holds, acked, seconds, starving, full)


def _slow_among_quick(view: View, queue: Queue) -> Iterator[Hoard]:
    """Yield the consumer that works, and is sent far more than it works off, while others have room and are quick."""
    limits, unacked = view.limits(queue), queue.messages_unacked or 0
    if unacked < _LEAST_HELD or queue.type == "stream":
        return
    links = [link for link in view.links(queue) if link.channel and view.queues_served(link.channel.name) == 1]
    if len(links) < 2:
        return
    link = max(links, key=lambda each: held(each.channel) if each.channel else 0)
    others = [each for each in links if each is not link]
    channel = link.channel
    if channel is None or held(channel) < max(_LEAST_HELD, limits.consumers.hoard_share * unacked):
        return
    history = view.channel_history(channel.name)
    acked, seconds = delta(history, "ack"), span(history)
    by_others = sum(delta(view.channel_history(each.channel.name), "ack") for each in others if each.channel)
    if not acked or seconds < limits.early or held(channel) * seconds / acked < limits.consumers.hoard_work:
        return
    room = [each for each in others if each.channel and held(each.channel) < (prefetch(view, each) or QUORUM_MOST)]
    quick = by_others * held(channel) > _QUICKER * acked * sum(held(each.channel) for each in others if each.channel)
    if not room or (by_others and not quick):
        return
    least = held(channel) // 2
    full = stretch(view.history(queue), lambda older, newer: _above(older.value, least) and _above(newer.value, least))
    if span(full) >= limits.early:
        starving = tuple(each for each in others if each.channel and each.channel.messages_unacked == 0)
        yield Hoard(queue, link, held(channel), acked, seconds, starving, full)


def _above(queue: Queue, much: int) -> bool:
    return (queue.messages_unacked or 0) > much


def _finding(view: View, hoard: Hoard) -> Finding:
    queue, link, seconds = hoard.queue, hoard.link, span(hoard.full)
    limits = view.limits(queue).consumers
    late = seconds >= limits.hoard_for
    unacked = source("/api/channels", "messages_unacknowledged")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=hoard.full[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "hoarder": process_facts(link),
            "unlimited_consumers": None,
            "clients": client_names((link,)),
            "unacked": hoard.unacked,
            "queue_unacked": queue.messages_unacked or 0,
            "ready": queue.messages_ready or 0,
            "acked": hoard.acked,
            "prefetch": link.consumer.prefetch_count,
            "starving_consumers": len(hoard.starving),
            "priority": preferred_priority(hoard.link, view.links(hoard.queue)),
            "max_work_seconds": limits.hoard_work,
            "warning_after_seconds": limits.hoard_for,
        },
        evidence=(
            Evidence(
                key="hoarder",
                value=hoard.unacked,
                unit=Unit.MESSAGES,
                source=unacked,
            ),
            Evidence(
                key="acked",
                value=hoard.acked,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.ack"),
                facts={"seconds": hoard.seconds},
            ),
            Evidence(
                key="prefetch", value=link.consumer.prefetch_count, source=source("/api/consumers", "prefetch_count")
            ),
            *(
                Evidence(
                    key="starving", value=0, unit=Unit.MESSAGES, source=unacked, facts={"held_by": consumer_facts(each)}
                )
                for each in hoard.starving[:3]
            ),
        ),
        involved=involved_consumers((queue,), (link, *hoard.starving)),
        certainty=Certainty.CERTAIN if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _risk(vhost: str, found: list[tuple[Queue, ConsumerPath]]) -> Finding:
    links = [link for _, link in found]
    listed: list[Fact] = [
        {
            "queue": queue.name,
            "tag": link.consumer.tag,
            "client": client_name(link.connection, link.consumer.connection_name),
        }
        for queue, link in sorted(found, key=lambda each: (each[0].name, each[1].consumer.tag))
    ]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        facts={**dict.fromkeys(_HOARD_FACTS), "unlimited_consumers": listed, "clients": client_names(links)},
        evidence=(
            Evidence(
                key="unlimited", value=len(found), source=source("/api/consumers", "prefetch_count", "ack_required")
            ),
        ),
        involved=involved_consumers((queue for queue, _ in found), links),
        certainty=Certainty.CERTAIN,
    )
