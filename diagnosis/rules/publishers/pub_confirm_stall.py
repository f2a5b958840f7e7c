"""pub-confirm-stall (A07): messages were published, and the broker confirms none of them.

The cause is elsewhere: a queue without majority, a node that hangs, a disk that does not answer. When it ends, the
confirms come. Source: https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import HELD_BACK, Publisher, by_vhost, named
from diagnosis.series import delta, span, stretch
from diagnosis.window import Seen
from diagnosis.words import amount, lasting, some

NAME = "pub-confirm-stall"

_SICK = {"minority", "down", "stopped", "crashed"}
"""States of queues that confirm nothing, or only nack."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host with publishers that wait."""
    stalled = []
    for channel in view.channels:
        if not channel.messages_unconfirmed or channel.confirm is not True:
            continue
        connection = view.connection(channel.connection_name)
        if connection is not None and connection.state == HELD_BACK:
            continue
        still = stretch(view.channel_history(channel.name), _stands)
        if len(still) > 1 and span(still) >= view.thresholds.interval:
            waits = Publisher(
                channel=channel, connection=connection, lately=still, published=channel.messages_unconfirmed
            )
            if _seconds(view, waits) >= view.thresholds.early:
                stalled.append(waits)
    for vhost, group in by_vhost(stalled).items():
        yield _finding(view, vhost, group)


def _stands(older: Seen[Channel], newer: Seen[Channel]) -> bool:
    """Between two readings nothing was confirmed, and something was open all the time."""
    before, after = older.value.messages_unconfirmed or 0, newer.value.messages_unconfirmed or 0
    return 0 < before <= after and delta((older, newer), "confirm") == 0


def _seconds(view: View, waits: Publisher) -> float:
    """How long nothing was confirmed; a channel that is idle has waited since then, as the broker tells."""
    idle = waits.channel.idle_since
    seen = view.now.since(waits.lately[0].at)
    return max(seen, view.now.wall - idle) if idle is not None else seen


def _finding(view: View, vhost: str, group: list[Publisher]) -> FindingReport:
    seconds = max(_seconds(view, each) for each in group)
    late = seconds >= view.thresholds.publishers.stall_for
    still_open = sum(each.published for each in group)
    sick = sorted(
        (queue for queue in view.all_queues if queue.vhost == vhost and _is_sick(queue)), key=lambda queue: queue.name
    )
    down = sorted(node.name for node in view.nodes if node.running is False)
    verb = "waits" if len(group) == 1 else "wait"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if late else Severity.WARNING,
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.lately[0].at.iso() for each in group),
        summary=(
            f"{named(group)} in vhost {vhost!r} {verb} for confirms: {amount(still_open, 'message')} open, "
            f"none confirmed for {lasting(seconds)}"
        ),
        cause=_cause(sick, down),
        evidence=(*_evidence(group), *_of_queues(sick)),
        next_steps=_steps(sick, down),
        runbook=runbook(NAME),
    )


def _is_sick(queue: Queue) -> bool:
    leaderless = queue.type == "quorum" and queue.leader is None and queue.members is not None
    return queue.state in _SICK or leaderless


def _cause(sick: list[Queue], down: list[str]) -> str:
    if sick:
        names = some(f"{queue.name!r} ({queue.state or 'no leader'})" for queue in sick)
        return f"Queues of this vhost cannot confirm: {names}. A channel does not say where it publishes to."
    if down:
        return f"{some(down)} is down: a queue that lost its majority or its node confirms nothing until it is back."
    return (
        "The broker took the messages and has not stored them yet: a disk that does not answer, a node that hangs, "
        "or a queue without majority. The probes' confirm latency by queue type tells which."
    )


def _evidence(group: list[Publisher]) -> Iterator[EvidenceReport]:
    for each in sorted(group, key=lambda each: (-each.published, each.channel.name))[:3]:
        state = each.channel.state or "unknown"
        raft = each.channel.pending_raft_commands
        pending = f", {raft} waiting for a quorum queue" if raft else ""
        yield EvidenceReport(
            what=f"publisher {each.name!r}, channel {each.channel.name!r}",
            value=(
                f"{each.published} unconfirmed{pending}, 0 confirmed in {lasting(span(each.lately))}; "
                f"channel {state}, connection {each.connection.state if each.connection else 'unknown'}"
            ),
            expected="0 unconfirmed, or confirms that come",
            source="/api/channels messages_unconfirmed, message_stats.confirm, pending_raft_commands, state",
        )


def _of_queues(sick: list[Queue]) -> Iterator[EvidenceReport]:
    for queue in sick[:3]:
        online = len(queue.online) if queue.online is not None else None
        members = f"; {online} of {len(queue.members)} members online" if queue.members and online is not None else ""
        yield EvidenceReport(
            what=f"queue {queue.name!r} in vhost {queue.vhost!r}",
            value=f"{queue.state or 'no leader'}{members}",
            expected="running",
            source="/api/queues state, leader, online, members",
        )


def _steps(sick: list[Queue], down: list[str]) -> tuple[str, ...]:
    first = (
        f"start the node again: {some(down)}; then see: rabbitmq-diagnostics cluster_status"
        if down
        else "see whether all nodes answer: rabbitmq-diagnostics cluster_status"
    )
    quorum = [queue for queue in sick if queue.type == "quorum"]
    look = f"see its members: rabbitmq-queues quorum_status -p {quorum[0].vhost} {quorum[0].name}" if quorum else ""
    rest = (
        "see what the disk does: iostat -x 5 on the node, and the probes' latency of quorum queues",
        "do not resend blindly: what is open may be stored already; confirms come when the cause is gone",
    )
    return (first, *([look] if look else []), *rest)
