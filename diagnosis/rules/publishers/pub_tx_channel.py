"""pub-tx-channel (A09): transactions: slow where they are used, and a stall where one stays open.

Acknowledgements of an open transaction are held back: the queue counts its messages as unacknowledged while the
channel counts none. Source: https://www.rabbitmq.com/docs/semantics#tx, https://www.rabbitmq.com/docs/confirms
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.rules.publishers.publishing import Publisher, by_vhost, listed, named, pace, publishers
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import amount, client, close_connection, lasting

NAME = "pub-tx-channel"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each transaction that stays open, and one for each virtual host that uses them."""
    for channel in view.channels:
        if channel.transactional and (channel.acks_uncommitted or channel.messages_uncommitted):
            yield from _open(view, channel)
    busy = [each for each in publishers(view) if each.channel.transactional]
    for vhost, group in by_vhost(busy).items():
        yield _used(vhost, group)


def _queues_of_connection(view: View, finding: FindingReport) -> Iterable[Hashable]:
    if finding.subject.kind != "connection":
        return ()
    return tuple(
        (consumer.vhost, consumer.queue)
        for consumer in view.part("consumers")
        if consumer.connection_name == finding.subject.name
    )


def _queue(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_CONSUMED_WITHOUT_COMMIT = Relation(_queues_of_connection, _queue)
"""The cause is a connection with an open transaction; what follows is about a queue that it consumes from."""


def _open(view: View, channel: Channel) -> Iterator[FindingReport]:
    """The finding where nothing was committed for long."""
    history = stretch(view.channel_history(channel.name), _uncommitted)
    seconds = span(history)
    if channel.idle_since is not None:
        seconds = max(seconds, view.now.wall - channel.idle_since)
    known = len(history) > 1 or channel.idle_since is not None
    if not known or seconds < view.thresholds.early:
        return
    acks, publishes = channel.acks_uncommitted or 0, channel.messages_uncommitted or 0
    late = seconds >= view.thresholds.publishers.transaction_open
    connection = view.connection(channel.connection_name)
    name = client(connection, channel.connection_name)
    what = " and ".join(
        [
            *([amount(acks, "acknowledgement")] if acks else []),
            *([f"{amount(publishes, 'message')} that nobody sees yet"] if publishes else []),
        ]
    )
    soon = "" if late else f"; a warning after {lasting(view.thresholds.publishers.transaction_open)}"
    by_http, by_pid = close_connection(channel.connection_name or channel.name, "open transaction")
    yield FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(
            kind="connection", name=channel.connection_name or channel.name, vhost=channel.vhost, node=channel.node
        ),
        since=history[0].at.iso(),
        summary=f"{name!r} holds back {what} in a transaction that is open for {lasting(seconds)} or more{soon}",
        cause=(
            "The client sent tx.select, then published or acknowledged, and has not sent tx.commit or tx.rollback: "
            "until it does, none of it counts."
        ),
        evidence=(
            EvidenceReport(
                what=f"channel {channel.name!r}",
                value=f"{acks} acknowledgements and {publishes} publishes uncommitted",
                expected="0 within seconds",
                source="/api/channels transactional, acks_uncommitted, messages_uncommitted, idle_since",
            ),
        ),
        next_steps=(
            f"ask the owner of {name!r} what it waits for: a thread dump shows who should commit",
            f"or end it (uncommitted publishes are gone, deliveries go to others): {by_http}",
            by_pid,
            "later: confirms and acknowledgements without transactions",
        ),
        runbook=runbook(NAME),
    )


def _uncommitted(older: Seen[Channel], newer: Seen[Channel]) -> bool:
    """Neither committed nor rolled back in between: what is open does not fall."""
    for name in ("acks_uncommitted", "messages_uncommitted"):
        before, after = getattr(older.value, name) or 0, getattr(newer.value, name) or 0
        if after < before:
            return False
    then, now = older.value, newer.value
    return bool(then.acks_uncommitted or then.messages_uncommitted) and then.stats.publish == now.stats.publish


def _used(vhost: str, group: list[Publisher]) -> FindingReport:
    rate = sum(each.rate for each in group)
    verb = "publishes" if len(group) == 1 else "publish"
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.lately[0].at.iso() for each in group),
        summary=(
            f"{amount(len(group), 'channel')} in vhost {vhost!r} {verb} {pace(rate)} in transactions ({named(group)}): "
            "each commit waits for the disk, and confirms would do the same at many times the speed"
        ),
        cause="These channels sent tx.select. A commit is a round trip in which the client can do nothing else.",
        evidence=tuple(
            EvidenceReport(
                what=f"publisher {each.name!r}, channel {each.channel.name!r}",
                value=f"{amount(each.published, 'message')} in {lasting(each.seconds)}, transactional",
                expected="confirm mode",
                source="/api/channels transactional, message_stats.publish",
            )
            for each in group[:3]
        ),
        next_steps=(
            f"where throughput matters, use publisher confirms instead: {listed(group)}",
            "see all of them: rabbitmqctl list_channels connection name transactional messages_uncommitted",
        ),
        runbook=runbook(NAME),
    )
