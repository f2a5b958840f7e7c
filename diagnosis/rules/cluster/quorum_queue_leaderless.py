"""quorum-queue-leaderless (E05): most replicas of a quorum queue answer, and none of them leads.

An election takes seconds; one that does not end is a fault. Without a majority there can be no leader: that is
quorum-queue-minority and not this. The broker's own check exists from 4.1 on; before, the named leader is looked at.
Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.quorum_queue_minority import minority
from diagnosis.rules.cluster.standing import about, bundles, down, listed, other, tail, told
from diagnosis.series import span
from diagnosis.words import lasting

NAME = "quorum-queue-leaderless"

CHECK = "quorum-queues-without-elected-leaders"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all quorum queues that have replicas enough and no leader."""
    stopped, limits = down(view), view.thresholds
    quorum = [queue for queue in view.all_queues if queue.type == "quorum" and queue.members]
    if not quorum:
        return
    headless = [queue for queue in quorum if _headless(queue, stopped) and not minority(queue, stopped)]
    known = {queue.key: _seconds(view, queue, stopped) for queue in headless}
    lasts = [queue for queue in headless if known[queue.key] >= limits.early]
    if lasts:
        for queues in bundles(lasts):
            yield _finding(view, queues, max(known[queue.key] for queue in queues))
        return
    if view.version is not None and view.version < (4, 1):
        yield InconclusiveReport(
            rule=NAME,
            because="before 4.1 the broker has no check for it, and goes on to name a leader that is gone; only "
            "leaders "
            "on nodes that do not run are seen to be",
            needs="an upgrade; until then the probe of quorum queues feels it: confirms that never come",
            permanent=True,
        )
    check = view.checks.get(CHECK)
    if check is None or check.ok is not False or any(minority(queue, stopped) for queue in quorum):
        return
    seconds = _failing(view)
    if seconds >= limits.early:
        yield _finding(view, (), seconds)


def _headless(queue: Queue, stopped: frozenset[str]) -> bool:
    return queue.leader is None or queue.leader in stopped or queue.state == "down"


def _seconds(view: View, queue: Queue, stopped: frozenset[str]) -> float:
    return span(tail(view.history(queue), lambda seen: _headless(seen, stopped)))


def _failing(view: View) -> float:
    """How long the broker's own check has failed."""

    def fails(checks: Sequence[object]) -> bool:
        return any(getattr(check, "name", "") == CHECK and getattr(check, "ok", None) is False for check in checks)

    return span(tail(view.window.readings("health"), fails))


def _finding(view: View, queues: Sequence[Queue], seconds: float) -> FindingReport:
    late = seconds >= view.thresholds.cluster.leaderless_for
    evidence = [
        EvidenceReport(
            what=f"leader of {queue.name!r}",
            value=f"{queue.leader} (does not run)" if queue.leader else "none",
            expected=f"one of {', '.join(queue.members or ())}",
            source="/api/queues leader",
        )
        for queue in queues[:3]
    ]
    if len(queues) > 3:
        evidence.append(EvidenceReport(what="queues", value=listed(queues), source="/api/queues leader"))
    check = view.checks.get(CHECK)
    if check is not None:
        evidence.append(
            EvidenceReport(
                what="the broker's own check",
                value="ok" if check.ok else check.reason or "failed",
                expected="ok",
                source=f"/api/health/checks/{CHECK}",
            )
        )
    who = told(queues, "quorum queue") if queues else "some quorum queues"
    subject = about(view, queues) if queues else Subject(kind="cluster", name=view.window.cluster)
    patience = "" if late else "; an election takes a few seconds, this one is late"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if late else Severity.INFO,
        subject=subject,
        since=None,
        summary=f"No leader for {who} for {lasting(seconds)} or more: publishes are not confirmed, nothing is "
        f"delivered{patience}",
        cause="Replicas enough are there and none of them was elected: they cannot reach each other, are overloaded, "
        "or one of them is stuck.",
        evidence=tuple(evidence),
        next_steps=_steps(view, queues),
        runbook=runbook(NAME),
    )


def _steps(view: View, queues: Sequence[Queue]) -> tuple[str, ...]:
    helper = other(view, None)
    name = f"--vhost {quote(queues[0].vhost)} {quote(queues[0].name)}" if queues else "--vhost VHOST QUEUE"
    find = (
        f"rabbitmq-diagnostics -n {helper} check_for_quorum_queues_without_an_elected_leader --across-all-vhosts '.*'"
    )
    recent = view.version is not None and view.version >= (4, 1)
    which = (f"see which queues: {find}",) if recent else ()
    return (
        *which,
        (
            f"see what each replica says (leader, follower, candidate, term): rabbitmq-queues -n {helper} "
            f"quorum_status {name}"
        ),
        (
            "terms that rise with each look are an election storm: look for overloaded nodes and a bad network between "
            "them"
        ),
        (
            "restart the replicas one node after another, the one that is stuck first: rabbitmqctl -n NODE stop_app; "
            "rabbitmqctl -n NODE start_app"
        ),
        "read the logs of the members for the queue's name: rabbitmq-diagnostics -n NODE log_tail -N 200",
    )
