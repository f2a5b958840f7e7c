"""pub-tx-channel (A09): transactions: slow in normal use, and a stall if one stays open.

Acknowledgements in an open transaction do not count yet: the queue counts its messages as unacknowledged while the
channel counts none. A consumer that commits after more messages than its prefetch allows never gets to the commit.
Source: https://www.rabbitmq.com/docs/semantics#tx, https://www.rabbitmq.com/docs/confirms
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Channel, Connection
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import age_seconds, involved_connections
from diagnosis.rules.consumers._shared.holders import consumers_of
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    by_vhost,
    clients,
    first_seen,
    involved_publishers,
    listed,
    publishers,
)
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import gathered_seconds, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "pub-tx-channel"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding per transaction that stays open, and one per virtual host that uses transactions."""
    for channel in view.channels:
        if channel.transactional and (channel.acks_uncommitted or channel.messages_uncommitted):
            yield from _open_transaction(view, channel)
    transactional = [each for each in publishers(view) if each.channel.transactional]
    for vhost, group in by_vhost(transactional).items():
        yield _transactional_publishers(vhost, group)


def _queues_of_connection(view: View, finding: Finding) -> Iterable[Hashable]:
    return view.queues_consumed(finding.subject.name) if finding.subject.kind == "connection" else ()


def _queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_CONSUMED_WITHOUT_COMMIT = Relation(_queues_of_connection, _queue)
"""The cause is a connection with an open transaction; the consequence is about a queue from which it consumes."""


def _open_transaction(view: View, channel: Channel) -> Iterator[Finding]:
    """Yield the finding if nothing was committed for a long time."""
    history = stretch(view.channel_history(channel.name), _uncommitted)
    connection = view.connection(channel.connection_name)
    seen = span(history)
    if channel.idle_since is not None:
        seen = max(seen, view.now.wall - channel.idle_since)
    seconds = max(seen, _by_pace(view, channel, connection, history))
    known = len(history) > 1 or channel.idle_since is not None
    if not known or seconds < view.thresholds.early:
        return
    acks, publishes = channel.acks_uncommitted or 0, channel.messages_uncommitted or 0
    warning_after = view.thresholds.publishers.transaction_open
    late = seconds >= warning_after
    served = [
        (queue, consumer.prefetch_count or 0)
        for consumer in next(iter(consumers_of(view, channel)[-1:]), ())
        if (queue := view.queue(consumer.vhost, consumer.queue)) is not None
    ]
    allowed = sum(most for _, most in served)
    # It gets no more messages until it commits, and others wait.
    stands_still = 0 not in {most for _, most in served} and 0 < allowed <= acks
    waiting = [queue for queue, _ in served if queue.messages_ready and queue.consumers == 1]
    name = channel.connection_name or channel.name
    yield Finding(
        rule=NAME,
        severity=(Severity.CRITICAL if stands_still and waiting else Severity.WARNING) if late else Severity.INFO,
        subject=Subject(kind="connection", name=name, vhost=channel.vhost, node=channel.node),
        since=iso(view.now.wall - seconds),
        facts={
            "open_transaction": True,
            "client": client_name(connection, channel.connection_name),
            "channel": channel.name,
            "connection": name,
            "acks_uncommitted": acks,
            "publishes_uncommitted": publishes,
            "open_seconds": seconds,
            "by_pace": seconds > seen,
            "prefetch": allowed if stands_still else None,
            "queues": [queue.name for queue, _ in served[:MAX_NAMED]],
            "ready": sum(queue.messages_ready or 0 for queue, _ in served),
            "warning_after_seconds": warning_after,
        },
        evidence=(
            Evidence(
                key="uncommitted",
                value=acks + publishes,
                source=source(
                    "/api/channels", "transactional", "acks_uncommitted", "messages_uncommitted", "idle_since"
                ),
            ),
        ),
        involved=replace(
            involved_connections([connection], [channel.name]), queues=queue_refs(queue for queue, _ in served)
        ),
        certainty=Certainty.CERTAIN if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _uncommitted(older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    """Return whether nothing was committed or rolled back in between: the uncommitted numbers do not fall.

    What is committed is counted as published or acknowledged only then.
    """
    for name in ("acks_uncommitted", "messages_uncommitted"):
        before, after = getattr(older.value, name) or 0, getattr(newer.value, name) or 0
        if after < before:
            return False
    then, now = older.value, newer.value
    counted = [(each.stats.publish, each.stats.ack) for each in (then, now)]
    return bool(then.acks_uncommitted or then.messages_uncommitted) and counted[0] == counted[1]


def _by_pace(view: View, channel: Channel, connection: Connection | None, history: Series[Channel]) -> float:
    """Return how long the uncommitted messages took to gather, at the pace of these readings; 0 if none are added.

    No longer than the channel can have been open.
    """
    first, newest = _uncommitted_count(history[0].value), _uncommitted_count(history[-1].value)
    open_for = min(age_seconds(view, connection), view.longest_open(channel))
    return min(open_for, gathered_seconds(newest, newest - first, span(history)))


def _uncommitted_count(channel: Channel) -> int:
    return (channel.acks_uncommitted or 0) + (channel.messages_uncommitted or 0)


def _transactional_publishers(vhost: str, group: list[ActivePublisher]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=first_seen(group),
        facts={
            "open_transaction": False,
            "channels": len(group),
            "clients": clients(group),
            "publishers": listed(group),
            "publish_rate": sum(each.rate for each in group),
        },
        evidence=tuple(
            Evidence(
                key="publisher",
                value=each.published,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "transactional", "message_stats.publish"),
                facts={"publisher": each.facts()},
            )
            for each in group[:3]
        ),
        involved=involved_publishers(group),
        certainty=Certainty.CERTAIN,
        seen_seconds=max(each.seconds for each in group),
    )
