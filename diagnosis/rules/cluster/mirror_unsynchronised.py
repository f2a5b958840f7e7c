"""mirror-unsynchronised (E10): mirrors of a classic queue lack messages; up to 3.13, mirrors were removed in 4.0.

A mirror that lacks messages cannot take over without losing them.
Source: https://www.rabbitmq.com/docs/3.13/ha#unsynchronised-mirrors
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.replica_state import queue_list, queue_refs, queues_evidence, queues_subject
from diagnosis.rules.nodes._shared.node_history import trailing
from diagnosis.series import span

NAME = "mirror-unsynchronised"
_CHECK = "node-is-mirror-sync-critical"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all mirrored queues with a mirror that lacks messages."""
    lacking = [queue for queue in view.all_queues if queue.mirrors and _lagging(queue)]
    seconds = {queue.key: span(trailing(view.history(queue), lambda seen: bool(_lagging(seen)))) for queue in lacking}
    behind = sorted((q for q in lacking if seconds[q.key] >= view.thresholds.early), key=lambda queue: queue.key)
    if behind:
        yield _finding(view, behind, max(seconds[queue.key] for queue in behind))


def _lagging(queue: Queue) -> tuple[str, ...]:
    """The nodes whose mirror lacks messages of the queue."""
    if queue.synchronised_mirrors is None:
        return ()
    return tuple(sorted(set(queue.mirrors or ()) - set(queue.synchronised_mirrors)))


def _finding(view: View, queues: Sequence[Queue], seconds: float) -> Finding:
    limit = view.thresholds.cluster.mirror_for
    lasting = seconds >= limit
    nodes = sorted({name for queue in queues for name in _lagging(queue)})
    check = view.checks.get(_CHECK)
    evidence = [
        Evidence(
            key="mirrors",
            source=source("/api/queues", "slave_nodes", "synchronised_slave_nodes"),
            facts={"queue_name": queue.name, "lagging": list(_lagging(queue))},
        )
        for queue in queues[:3]
    ]
    if len(queues) > 3:
        evidence.append(queues_evidence())
    if check is not None and check.ok is False:
        evidence.append(
            Evidence(key="check", value=check.reason or "failed", source=source(f"/api/health/checks/{_CHECK}"))
        )
    first = queues[0]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=queues_subject(view, queues),
        facts={
            **queue_list(queues),
            "first_queue": {"vhost": first.vhost, "name": first.name},
            "messages": sum(queue.messages or 0 for queue in queues),
            "lagging_nodes": nodes,
            "warning_after_seconds": limit,
        },
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=Involved(queues=queue_refs(queues), nodes=tuple(nodes)),
    )
