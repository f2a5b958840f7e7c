"""mirror-unsynchronised (E10): mirrors of a classic queue lack messages; until 3.13, mirrors are gone in 4.0.

A mirror that lacks messages cannot take over without losing them.
Source: https://www.rabbitmq.com/docs/3.13/ha#unsynchronised-mirrors
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import about, listed, tail, told
from diagnosis.series import span
from diagnosis.words import amount, lasting, place, some

NAME = "mirror-unsynchronised"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all mirrored queues of which a mirror lacks messages."""
    limits = view.thresholds
    lacking = [queue for queue in view.all_queues if queue.mirrors and lagging(queue)]
    lasts = {queue.key: span(tail(view.history(queue), lambda seen: bool(lagging(seen)))) for queue in lacking}
    behind = sorted((q for q in lacking if lasts[q.key] >= limits.early), key=lambda queue: queue.key)
    if behind:
        yield _finding(view, behind, max(lasts[queue.key] for queue in behind))


def lagging(queue: Queue) -> tuple[str, ...]:
    """The nodes whose mirror lacks messages that the queue holds."""
    if queue.synchronised_mirrors is None:
        return ()
    return tuple(sorted(set(queue.mirrors or ()) - set(queue.synchronised_mirrors)))


def _finding(view: View, queues: Sequence[Queue], seconds: float) -> FindingReport:
    late = seconds >= view.thresholds.cluster.mirror_for
    held = sum(queue.messages or 0 for queue in queues)
    nodes = sorted({name for queue in queues for name in lagging(queue)})
    check = view.checks.get("node-is-mirror-sync-critical")
    evidence = [
        EvidenceReport(
            what=f"mirrors of {queue.name!r} that lack messages",
            value=some(lagging(queue)),
            expected="none",
            source="/api/queues slave_nodes, synchronised_slave_nodes",
        )
        for queue in queues[:3]
    ]
    if len(queues) > 3:
        evidence.append(EvidenceReport(what="queues", value=listed(queues), source="/api/queues"))
    if check is not None and check.ok is False:
        evidence.append(
            EvidenceReport(
                what="the broker's own check",
                value=check.reason or "failed",
                expected="ok",
                source="/api/health/checks/node-is-mirror-sync-critical",
            )
        )
    patience = "" if late else f"; a mirror that just joined looks the same, warning after {lasting(_limit(view))}"
    subject = about(view, queues)
    if subject.kind == "queue":
        subject = Subject(kind="queue", name=queues[0].name, vhost=queues[0].vhost, node=queues[0].node)
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=subject,
        since=None,
        summary=f"Mirrors of {told(queues, 'queue')} lack messages for {lasting(seconds)} or more: if its node "
        "ends, up "
        f"to {amount(held, 'message')} are lost or unreachable{patience}",
        cause=f"The mirrors at {some(nodes)} joined when the queue held messages already, and are not filled: "
        "ha-sync-mode is manual, which is its default, or filling them takes long.",
        evidence=tuple(evidence),
        next_steps=(
            f"fill them (the queue stands still meanwhile): rabbitmqctl sync_queue {place(queues[0])}",
            "or let consumers drain the queue: a mirror that has what is left counts as synchronised",
            'later: "ha-sync-mode":"automatic" in the policy; better, quorum queues: mirrors are gone in 4.0',
        ),
        runbook=runbook(NAME),
    )


def _limit(view: View) -> float:
    return view.thresholds.cluster.mirror_for
