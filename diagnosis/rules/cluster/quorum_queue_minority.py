"""quorum-queue-minority (E04): most replicas of a quorum queue are away, so that it takes and gives nothing.

Publishers get no ack, no nack and no return: silence. The broker's alarms and aliveness checks stay fine.
3.10 goes on to call such a queue "running": there its replicas are counted.
Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from ackscope.findings import Severity
from ackscope.records import ProbeState
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import about, bundles, down, gone, listed, missing, other, tail, told
from diagnosis.series import span
from diagnosis.words import amount, some

NAME = "quorum-queue-minority"

STALLED = (
    *("pub-confirm-stall", "pub-credit-flow", "publisher-silent", "stuck-consumer", "slow-consumer", "no-consumer"),
    *("orphaned-unacked", "queue-overload", "stale-head", "consumer-ack-timeout"),
)
"""What clients of such a queue look like."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding for each quorum queue without a majority, or one for all where they are many."""
    stopped = down(view)
    lost = [queue for queue in view.all_queues if queue.type == "quorum" and _lost(view, queue, stopped)]
    for queues in bundles(lost):
        yield _finding(view, queues, stopped)


def minority(queue: Queue, stopped: frozenset[str]) -> bool:
    """Whether half of the replicas or more are away, as far as this one reading tells."""
    members = queue.members or ()
    if queue.state == "minority":
        return True
    return bool(members) and 2 * len(missing(queue, stopped)) >= len(members)


def buried(queue: Queue, stopped: frozenset[str]) -> bool:
    """Whether so many of its nodes do not run, whatever the queue itself says of them."""
    members = queue.members or ()
    return bool(members) and 2 * sum(name in stopped for name in members) >= len(members)


def _lost(view: View, queue: Queue, stopped: frozenset[str]) -> bool:
    if not minority(queue, stopped):
        return False
    # The broker's own word counts at once, ours after two readings: a queue that is being made has few replicas yet.
    if queue.state == "minority" or buried(queue, gone(view)):
        return True
    return _seconds(view, queue) >= view.thresholds.cluster.seen


def _seconds(view: View, queue: Queue) -> float:
    return span(tail(view.history(queue), lambda seen: minority(seen, frozenset())))


def _finding(view: View, queues: Sequence[Queue], stopped: frozenset[str]) -> FindingReport:
    away = sorted({name for queue in queues for name in missing(queue, stopped)})
    waiting = sum(queue.messages or 0 for queue in queues)
    since = min(
        (seen[0].at for queue in queues[:50] if (seen := tail(view.history(queue), lambda q: minority(q, stopped)))),
        key=lambda at: at.mono,
        default=None,
    )
    first = queues[0]
    evidence = [
        EvidenceReport(
            what=f"replicas of {first.name!r} that answer",
            value=f"{len(first.members or ()) - len(missing(first, stopped))} of {len(first.members or ())}",
            expected=f"at least {len(first.members or ()) // 2 + 1}",
            source="/api/queues members, online",
        )
    ]
    if first.state not in {None, "running"}:
        evidence.append(
            EvidenceReport(
                what=f"state of {first.name!r}", value=first.state or "", expected="running", source="/api/queues state"
            )
        )
    if away:
        names = some([f"{name} (does not run)" if name in stopped else name for name in away])
        evidence.append(
            EvidenceReport(
                what="nodes with no replica online", value=names, expected="none", source="/api/nodes, /api/queues"
            )
        )
    if len(queues) > 1:
        evidence.append(EvidenceReport(what="queues", value=listed(queues), source="/api/queues"))
    evidence.extend(_felt(view))
    holds = f"; {amount(waiting, 'message')} cannot be taken meanwhile" if waiting else ""
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=about(view, queues),
        since=since.iso() if since else None,
        summary=f"No majority of replicas for {told(queues, 'quorum queue')}: publishes are not confirmed, nothing is "
        f"delivered{holds}",
        cause="Half of the replicas or more are away, and a quorum queue does nothing without a majority. Publishers "
        "get neither ack nor nack: what they sent is confirmed when the replicas are back.",
        evidence=tuple(evidence),
        next_steps=_steps(view, first, away),
        runbook=runbook(NAME),
    )


def _felt(view: View) -> list[EvidenceReport]:
    """What clients feel: our own probe, and channels of applications that wait for confirms."""
    items = [
        EvidenceReport(
            what=f"probe {outcome.stream}",
            value=f"{outcome.outstanding} published and not confirmed",
            expected="confirmed within seconds",
            source="probe: confirm",
        )
        for outcome in view.outcomes_of("confirm")
        if outcome.queue_type == "quorum" and outcome.state is ProbeState.RUNNING and outcome.outstanding
    ][:1]
    held = [channel for channel in view.channels if channel.pending_raft_commands and channel.messages_unconfirmed]
    if held:
        count = sum(channel.messages_unconfirmed or 0 for channel in held)
        items.append(
            EvidenceReport(
                what=f"channels that wait ({some(sorted(channel.name for channel in held), 2)})",
                value=f"{amount(count, 'message')} unconfirmed",
                expected="0",
                source="/api/channels messages_unconfirmed, pending_raft_commands",
            )
        )
    return items


def _steps(view: View, queue: Queue, away: Sequence[str]) -> tuple[str, ...]:
    helper = other(view, None)
    gone = away[0] if away else "LOST_NODE"
    place = f"--vhost {quote(queue.vhost)} {quote(queue.name)}"
    return (
        (
            f"bring the nodes back ({some(away) or 'see which replicas are away'}): systemctl start "
            "rabbitmq-server on each; "
            "the queue goes on by itself, and nothing is lost"
        ),
        f"see each replica: rabbitmq-queues -n {helper} quorum_status {place}",
        (
            "do not let publishers send again what is unconfirmed: it is in the log and is confirmed later, or would "
            "be twice"
        ),
        f"only while a majority is left, and the node is gone for good: rabbitmq-queues -n {helper} shrink {gone}",
        "only if most replicas are gone for good (messages are lost then): delete the queue and declare it again",
    )
