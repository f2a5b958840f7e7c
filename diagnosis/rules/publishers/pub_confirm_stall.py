"""pub-confirm-stall (A07): messages were published, and the broker confirms none of them.

The cause is elsewhere: a queue without a majority, a hung node, a disk that does not respond. When it ends, the
confirms arrive. Source: https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.rules.cluster._shared.silent_queues import silent_queues
from diagnosis.rules.publishers._shared.publishers import (
    BLOCKED,
    ActivePublisher,
    by_vhost,
    clients,
    first_seen,
    involved_publishers,
)
from diagnosis.series import delta, span, stretch
from diagnosis.window import Timestamped

NAME = "pub-confirm-stall"

# States of queues that confirm nothing, or only nack.
_UNAVAILABLE = {"minority", "down", "stopped", "crashed"}


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host with publishers that wait for confirms."""
    waiting = []
    for channel in view.channels:
        if not channel.messages_unconfirmed or channel.confirm is not True:
            continue
        connection = view.connection(channel.connection_name)
        if connection is not None and connection.state == BLOCKED:
            continue
        stalled = stretch(view.channel_history(channel.name), _confirms_nothing)
        if len(stalled) > 1 and span(stalled) >= view.thresholds.interval:
            unconfirmed = channel.messages_unconfirmed
            each = ActivePublisher(channel=channel, connection=connection, history=stalled, published=unconfirmed)
            if _stalled_seconds(view, each) >= view.thresholds.early:
                waiting.append(each)
    for vhost, group in by_vhost(waiting).items():
        yield _finding(view, vhost, group)


def _confirms_nothing(older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    """Return whether nothing was confirmed between two readings although messages were unconfirmed all the time."""
    before, after = older.value.messages_unconfirmed or 0, newer.value.messages_unconfirmed or 0
    return 0 < before <= after and delta((older, newer), "confirm") == 0


def _stalled_seconds(view: View, waiting: ActivePublisher) -> float:
    """Return the seconds without a confirm; by the broker's `idle_since` if that is longer."""
    idle_since = waiting.channel.idle_since
    seen = view.now.since(waiting.history[0].at)
    return max(seen, view.now.wall - idle_since) if idle_since is not None else seen


def _finding(view: View, vhost: str, group: list[ActivePublisher]) -> Finding:
    seconds = max(_stalled_seconds(view, each) for each in group)
    unavailable = sorted(
        (queue for queue in view.all_queues if queue.vhost == vhost and _is_unavailable(queue)),
        key=lambda queue: queue.name,
    )
    silent = silent_queues(view).get(vhost)
    suspected = [] if unavailable or silent is None else list(silent.queues)
    quorum = next((queue for queue in (*unavailable, *suspected) if queue.type == "quorum"), None)
    nodes_down = sorted(node.name for node in view.nodes if node.running is False)
    late = seconds >= view.thresholds.publishers.stall_for
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if late else Severity.WARNING,
        subject=Subject(kind="vhost", name=vhost),
        since=first_seen(group),
        facts={
            "clients": clients(group),
            "channels": len(group),
            "unconfirmed": sum(each.published for each in group),
            "stalled_seconds": seconds,
            "suspected_queues": [queue.name for queue in suspected],
            "unavailable_queues": [_state(queue) for queue in unavailable],
            "quorum_queue": None if quorum is None else queue_facts(quorum),
            "nodes_down": nodes_down,
        },
        evidence=(*_of_publishers(group), *_of_queues(unavailable)),
        involved=replace(
            involved_publishers(group),
            queues=tuple(map(queue_ref, (*unavailable, *suspected))),
            nodes=tuple(nodes_down),
        ),
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _is_unavailable(queue: Queue) -> bool:
    leaderless = queue.type == "quorum" and queue.leader is None and queue.members is not None
    return queue.state in _UNAVAILABLE or leaderless


def _state(queue: Queue) -> dict[str, Fact]:
    """Return state and members of a queue as facts; `state` is None if a queue without a leader reports none."""
    return {
        "name": queue.name,
        "state": queue.state,
        "members": len(queue.members) if queue.members is not None else None,
        "online": len(queue.online) if queue.online is not None else None,
    }


def _of_publishers(group: list[ActivePublisher]) -> Iterator[Evidence]:
    for each in sorted(group, key=lambda each: (-each.published, each.channel.name))[:3]:
        yield Evidence(
            key="publisher",
            value=each.published,
            unit=Unit.MESSAGES,
            source=source(
                "/api/channels",
                "messages_unconfirmed",
                "message_stats.confirm",
                "pending_raft_commands",
                "state",
            )
            + source("/api/connections", "state"),
            facts={
                "publisher": each.facts(),
                "pending_raft_commands": each.channel.pending_raft_commands,
                "channel_state": each.channel.state,
                "connection_state": each.connection.state if each.connection else None,
            },
        )


def _of_queues(unavailable: list[Queue]) -> Iterator[Evidence]:
    for queue in unavailable[:3]:
        yield Evidence(
            key="queue",
            value=queue.state,
            source=source("/api/queues", "state", "leader", "online", "members"),
            facts={"queue": {**queue_facts(queue), **_state(queue)}},
        )
