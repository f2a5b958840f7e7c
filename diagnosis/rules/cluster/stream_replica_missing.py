"""stream-replica-missing (E15): replicas of streams are away.

With a majority left it is a risk; without one, nothing is confirmed any more. A consumer that connects to a node
whose replica is away is refused (506 or stream not available).
Source: https://www.rabbitmq.com/docs/streams#replication
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.quorum_queue_minority import buried, minority
from diagnosis.rules.cluster.standing import about, absence, down, gone, listed, missing, other, tail, told
from diagnosis.series import span
from diagnosis.words import lasting

NAME = "stream-replica-missing"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the streams without a majority, and one for each node without replicas of the others."""
    stopped, limits = down(view), view.thresholds
    away: dict[str, list[Queue]] = defaultdict(list)
    lost: list[Queue] = []
    for queue in view.all_queues:
        if queue.type != "stream" or not queue.members:
            continue
        if minority(queue, stopped) and (
            queue.state == "minority" or buried(queue, gone(view)) or _seconds(view, queue) >= limits.cluster.seen
        ):
            lost.append(queue)
            continue
        for name in missing(queue, stopped):
            away[name].append(queue)
    if lost:
        yield _finding(view, sorted(lost, key=lambda queue: queue.key), stopped, None)
    for name, queues in sorted(away.items()):
        seconds = max(_absent(view, queue, name) for queue in queues[:50])
        if name in gone(view):
            seconds = max(seconds, span(absence(view, name)))
        if seconds >= (limits.cluster.seen if name in stopped else limits.early):
            yield _finding(view, sorted(queues, key=lambda queue: queue.key), stopped, (name, seconds))


def _seconds(view: View, queue: Queue) -> float:
    return span(tail(view.history(queue), lambda seen: minority(seen, frozenset())))


def _absent(view: View, queue: Queue, name: str) -> float:
    return span(tail(view.history(queue), lambda seen: name in missing(seen)))


def _finding(
    view: View, queues: Sequence[Queue], stopped: frozenset[str], place: tuple[str, float] | None
) -> FindingReport:
    first, helper = queues[0], other(view, place[0] if place else None)
    who = told(queues, "stream")
    late = place is not None and place[1] >= view.thresholds.cluster.replica_missing_for
    if place is None:
        severity, subject = Severity.CRITICAL, about(view, queues)
        summary = f"No majority of replicas for {who}: publishes are not confirmed"
        cause = "Half of the replicas or more are away; a stream confirms what a majority has written."
    else:
        name, seconds = place
        severity, subject = Severity.WARNING if late else Severity.INFO, Subject(kind="node", name=name, node=name)
        patience = "" if late else f"; warning after {lasting(view.thresholds.cluster.replica_missing_for)}"
        summary = (
            f"No replica at {name!r} of {who}, for {lasting(seconds)} or more: readers there are refused, and one more "
            f"loss may stop it{patience}"
        )
        state = "the node does not run" if name in stopped else "the node runs, its replica does not"
        cause = f"The replica at {name!r} does not answer: {state}."
    evidence = [
        EvidenceReport(
            what=f"replicas of {first.name!r} online",
            value=f"{len(first.members or ()) - len(missing(first, stopped))} of {len(first.members or ())}"
            + (f", state {first.state}" if first.state else ""),
            expected=f"{len(first.members or ())}",
            source="/api/queues members, online, state",
        )
    ]
    if len(queues) > 1:
        evidence.append(EvidenceReport(what="streams", value=listed(queues), source="/api/queues"))
    where = f"--vhost {quote(first.vhost)} {quote(first.name)}"
    nodes = sorted({name for queue in queues for name in missing(queue, stopped)})
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=subject,
        since=None,
        summary=summary,
        cause=cause,
        evidence=tuple(evidence),
        next_steps=(
            f"see each replica: rabbitmq-streams -n {helper} stream_status {where}",
            f"bring back {', '.join(nodes) or 'the nodes of the replicas'}: systemctl start rabbitmq-server",
            f"where the node runs and its replica does not: rabbitmq-streams -n {helper} restart_stream {where}",
            f"where a replica is lost: rabbitmq-streams -n {helper} delete_replica {where} NODE, then add_replica",
        ),
        runbook=runbook(NAME),
    )
