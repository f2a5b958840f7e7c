"""The finding about a stall, for the two rules that report one."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.awaited_replies import awaiting_replies, mutual_wait
from diagnosis.rules.consumers._shared.common_stops import common_stop
from diagnosis.rules.consumers._shared.handover import successors
from diagnosis.rules.consumers._shared.objects import (
    client_names,
    involved_consumers,
    preferred_priority,
    process_facts,
    queue_subject,
)
from diagnosis.rules.consumers._shared.self_fed import self_fed
from diagnosis.rules.consumers._shared.sessions import SETTLED_BY, session_evidence
from diagnosis.rules.consumers._shared.stalled_consumers import Stall
from diagnosis.rules.consumers._shared.stream_readers import reader_evidence
from diagnosis.unattributed import suspect_evidence, suspect_facts, with_suspects

_SKEW = 5.0
"""Seconds by which the beginning of a standstill and `idle_since` of its channel may differ."""

_PROCESS = ("tag", "client", "peer", "channel", "connection", "link", "host", "port", "connection_channels")
"""What is known of a consumer that is listed."""


def stuck_findings(view: View, rule: str, stalls: Iterable[Stall]) -> Iterator[Finding]:
    """Yield the finding for each queue; it names the other queues that the same client has stopped."""
    found = tuple(stalls)
    served: dict[Hashable, set[str]] = defaultdict(set)
    for stall in found:
        for link in stall.stuck:
            if not stall.suspects:
                served[_key(link)].add(stall.queue.name)
    for stall in found:
        others = set().union(*(served.get(_key(link), set()) for link in stall.stuck))
        yield _finding(view, rule, stall, sorted(others - {stall.queue.name}))


def _finding(view: View, rule: str, stall: Stall, other_queues: list[str]) -> Finding:
    queue, together = stall.queue, common_stop(view, stall.queue) if stall.stuck else None
    mutual = mutual_wait(view, stall.queue) if stall.stuck else None
    if (
        mutual is not None
        and together is not None
        and {each.queue.key for each in together.stalls} <= {each.queue.key for each in mutual.stalls}
    ):
        together = None
    fed = self_fed(view, queue, stall.stuck) if stall.whole_queue and stall.full and queue.messages_ready else None
    # A job that waits for another one of its queue does not end by itself, however long others are.
    endless = fed is not None or not stall.one_at_a_time
    # A stream keeps what its reader has not read, and what that does with its last chunk is not known.
    stopped = stall.whole_queue and stall.growing and endless and stall.lag is None
    severity = Severity.CRITICAL if stopped else Severity.WARNING
    unacked = stall.held
    if unacked is None:
        unacked = sum({_key(link): _unacked(link) for link in stall.stuck}.values())
    return Finding(
        rule=rule,
        severity=Severity.INFO if stall.early else severity,
        subject=queue_subject(queue),
        since=iso(stall.since),
        facts={
            "queue": queue_facts(queue),
            "whole_queue": stall.whole_queue,
            "consumers": stall.consumers,
            "stuck_consumers": len(stall.stuck) or stall.consumers,
            "unlisted": not stall.stuck,
            "standbys": stall.standbys,
            "successors": list[Fact](client_names(successors(view, queue))) if stall.standbys else [],
            "ready": queue.messages_ready or 0,
            "published": stall.published,
            "unacked": (queue.messages_unacked or 0) if stall.whole_queue and queue.messages_unacked else unacked,
            "held_seconds": stall.held_seconds,
            "warning_after_seconds": stall.warning_after_seconds,
            "one_at_a_time": stall.one_at_a_time,
            "unlimited": 0 in stall.prefetches and not stall.shared_prefetch,
            "shared_prefetch": stall.shared_prefetch,
            "starved_queues": list[Fact](each.name for each in stall.starved),
            "starved_ready": sum(each.messages_ready or 0 for each in stall.starved),
            "full": stall.full,
            "amqp10": stall.amqp10,
            "mqtt": stall.mqtt,
            "suspects": suspect_facts(stall.suspects),
            "settles_unknown": stall.settles_unknown,
            "lag": stall.lag,
            "returned": stall.returned,
            "clients": list[Fact](client_names(stall.stuck)),
            "never_acked": stall.never_acked,
            "connected_seconds": _connected(view, stall),
            "gathered": stall.gathered,
            "awaiting_replies": list[Fact](awaiting_replies(view, stall.stuck)) if stall.whole_queue else [],
            "prefetch": max(stall.prefetches, default=0),
            "priority": _priority(view, stall),
            "other_queues": list[Fact](other_queues),
            "self_fed": fed.facts() if fed is not None else None,
            "mutual": mutual.facts() if mutual is not None else None,
            "together": together.facts() if together is not None else None,
            "socket_unread": any(link.connection is not None and link.connection.send_pend for link in stall.stuck),
            "stuck_consumer": process_facts(stall.stuck[0]) if stall.stuck else dict.fromkeys(_PROCESS),
        },
        evidence=tuple(_evidence(stall, unacked)),
        involved=with_suspects(involved_consumers((queue, *stall.starved), stall.stuck), stall.suspects),
        certainty=Certainty.EARLY if stall.early else Certainty.LIKELY,
        seen_seconds=stall.seen_seconds,
    )


def _priority(view: View, stall: Stall) -> int | None:
    """Return the priority of the only stuck consumer, if the broker prefers it to others that wait; else None."""
    if len(stall.stuck) != 1 or stall.consumers < 2 or stall.standbys:
        return None
    return preferred_priority(stall.stuck[0], view.links(stall.queue))


def _connected(view: View, stall: Stall) -> float | None:
    """Return the age of the newest connection of the stuck consumers; None if one of them is not listed."""
    if not stall.stuck or any(link.connection is None for link in stall.stuck):
        return None
    return min(age_seconds(view, link.connection) for link in stall.stuck)


def _key(link: ConsumerPath) -> Hashable:
    """Return what holds the messages of a consumer: its channel or AMQP 1.0 session."""
    return link.session.key if link.session else link.consumer.channel_name or link.consumer.tag


def _unacked(link: ConsumerPath) -> int:
    if link.session is not None:
        return link.session.unsettled or 0
    return (link.channel.messages_unacked or 0) if link.channel else 0


def _evidence(stall: Stall, unacked: int) -> Iterator[Evidence]:
    queue = stall.queue
    if stall.lag is not None:
        yield from (reader_evidence(link) for link in stall.stuck[:5])
        return
    counted = source("/api/queues" if stall.whole_queue else "/api/channels", "message_stats.ack")
    if stall.mqtt:
        counted = source("/api/connections", "send_oct", "recv_oct")
    if stall.suspects:
        yield from suspect_evidence(stall.suspects)
    else:
        yield Evidence(key="acked", value=0, source=SETTLED_BY if stall.amqp10 else counted)
    yield Evidence(
        key="unacked",
        value=queue.messages_unacked or unacked,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_unacknowledged"),
    )
    yield Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source(
            "/api/queues", "messages_ready", "messages" if stall.amqp10 or stall.mqtt else "message_stats.publish"
        ),
    )
    if stall.returned:
        yield Evidence(
            key="returned",
            value=stall.returned,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.redeliver"),
        )
    if stall.suspects or not stall.stuck:
        return
    for link, prefetch in list(zip(stall.stuck, stall.prefetches, strict=True))[:5]:
        idle = link.channel.idle_since if link.channel else None
        # The broker renews it once a minute while the channel holds messages (4.3.6, 3.10.8).
        if idle is not None and idle > stall.since + _SKEW:
            idle = None
        if link.session is not None:
            yield session_evidence(link)
            continue
        yield Evidence(
            key="consumer",
            value=queue.messages_unacked if stall.mqtt else _unacked(link),
            unit=Unit.MESSAGES,
            source=source("/api/consumers") + source("/api/channels", "messages_unacknowledged", "idle_since"),
            facts={
                "held_by": consumer_facts(link),
                "prefetch": prefetch,
                "shared": 0 if link.channel is None else link.channel.global_prefetch_count or 0,
                "idle_since": None if idle is None else iso(idle),
            },
        )
        if link.connection is not None and link.connection.send_pend:
            yield Evidence(
                key="unsent",
                value=link.connection.send_pend,
                unit=Unit.BYTES,
                source=source("/api/connections", "send_pend"),
                facts={"connection": link.connection.name},
            )
