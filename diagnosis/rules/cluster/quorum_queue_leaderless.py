"""quorum-queue-leaderless (E05): most replicas of a quorum queue answer, and none of them leads.

An election takes seconds; one that does not end is a fault. Without a majority there can be no leader: that is
quorum-queue-minority. The broker's own check exists since 4.1; before, the node of the named leader is checked.
The check names no queue, and a queue whose leader is gone may still be listed with it: one that stands still since,
while a publisher waits for a confirm, is probably meant.
Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import other_node, stopped_nodes
from diagnosis.rules.cluster._shared.replica_state import (
    bundles,
    lost_majority,
    queue_list,
    queue_refs,
    queues_evidence,
    queues_subject,
)
from diagnosis.rules.cluster._shared.silent_queues import CHECK, silent_queues
from diagnosis.rules.nodes._shared.node_history import cluster_subject, failed_readings, trailing
from diagnosis.series import span

NAME = "quorum-queue-leaderless"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the quorum queues that have enough replicas and no leader."""
    stopped, limits = stopped_nodes(view), view.thresholds
    quorum = [queue for queue in view.all_queues if queue.type == "quorum" and queue.members]
    if not quorum:
        return
    leaderless = [queue for queue in quorum if _is_leaderless(queue, stopped) and not lost_majority(queue, stopped)]
    seconds = {queue.key: _seconds(view, queue, stopped) for queue in leaderless}
    lasting = [queue for queue in leaderless if seconds[queue.key] >= limits.early]
    if lasting:
        for queues in bundles(lasting):
            yield _finding(view, queues, max(seconds[queue.key] for queue in queues))
        return
    if view.version is not None and view.version < (4, 1):
        yield Inconclusive(rule=NAME, reason="no_check", permanent=True)
    check = view.checks.get(CHECK)
    if check is None or check.ok is not False or any(lost_majority(queue, stopped) for queue in quorum):
        return
    failing = span(failed_readings(view, CHECK))
    if failing < limits.early:
        return
    for silent in silent_queues(view).values():
        yield _finding(view, silent.queues, silent.seconds, listed=False)
    if not silent_queues(view):
        yield _finding(view, (), failing)


def _is_leaderless(queue: Queue, stopped: frozenset[str]) -> bool:
    return queue.leader is None or queue.leader in stopped or queue.state == "down"


def _seconds(view: View, queue: Queue, stopped: frozenset[str]) -> float:
    return span(trailing(view.history(queue), lambda seen: _is_leaderless(seen, stopped)))


def _finding(view: View, queues: Sequence[Queue], seconds: float, *, listed: bool = True) -> Finding:
    """Return the finding about queues; not `listed` if the broker still names a leader of theirs."""
    limit = view.thresholds.cluster.leaderless_for
    lasting = seconds >= limit
    evidence = [
        Evidence(
            key="leader",
            value=queue.leader,
            source=source("/api/queues", "leader"),
            facts={"queue_name": queue.name, "members": list(queue.members or ())},
        )
        if listed
        else Evidence(
            key="counters",
            value=queue.stats.publish,
            source=source("/api/queues", "message_stats"),
            facts={"queue_name": queue.name},
        )
        for queue in queues[:3]
    ]
    if len(queues) > 3:
        evidence.append(queues_evidence("leader"))
    check = view.checks.get(CHECK)
    if check is not None:
        value = "ok" if check.ok else check.reason or "failed"
        evidence.append(Evidence(key="check", value=value, source=source(f"/api/health/checks/{CHECK}")))
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if lasting else Severity.INFO,
        subject=queues_subject(view, queues) if queues else cluster_subject(view),
        facts={
            **queue_list(queues),
            "first_queue": {"vhost": queues[0].vhost, "name": queues[0].name} if queues else None,
            "suspected": not listed,
            "single_member": bool(queues) and all(len(queue.members or ()) == 1 for queue in queues),
            "nodes": len(view.nodes),
            "other_node": other_node(view, None),
            "critical_after_seconds": limit,
        },
        certainty=Certainty.LIKELY if lasting else Certainty.EARLY,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=Involved(
            queues=queue_refs(queues), nodes=tuple(sorted({name for queue in queues for name in queue.members or ()}))
        ),
    )
