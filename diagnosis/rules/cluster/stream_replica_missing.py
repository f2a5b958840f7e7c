"""stream-replica-missing (E15): replicas of streams are missing.

With a majority left it is a risk; without one, nothing is confirmed. A consumer that connects to a node whose replica
is missing is refused (506 or stream not available).
Source: https://www.rabbitmq.com/docs/streams#replication
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import absence, confirmed_stopped, other_node, stopped_nodes
from diagnosis.rules.cluster._shared.replica_state import (
    confirmed_lost_majority,
    missing_replicas,
    queue_list,
    queue_refs,
    queues_evidence,
    queues_subject,
    replicas_evidence,
)
from diagnosis.rules.nodes._shared.node_history import node_subject, trailing
from diagnosis.series import span

NAME = "stream-replica-missing"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the streams without a majority, and one for each node that lacks replicas of others."""
    stopped, limits = stopped_nodes(view), view.thresholds
    missing: dict[str, list[Queue]] = defaultdict(list)
    lost: list[Queue] = []
    for queue in view.all_queues:
        if queue.type != "stream" or not queue.members:
            continue
        if confirmed_lost_majority(view, queue, stopped):
            lost.append(queue)
            continue
        for name in missing_replicas(queue, stopped):
            missing[name].append(queue)
    if lost:
        yield _without_majority(view, sorted(lost, key=lambda queue: queue.key), stopped)
    for name, queues in sorted(missing.items()):
        seconds = max(_missing_seconds(view, queue, name) for queue in queues[:50])
        if name in confirmed_stopped(view):
            seconds = max(seconds, span(absence(view, name)))
        if seconds >= (limits.cluster.seen if name in stopped else limits.early):
            yield _missing_on(view, name, seconds, sorted(queues, key=lambda queue: queue.key), stopped)


def _missing_seconds(view: View, queue: Queue, name: str) -> float:
    return span(trailing(view.history(queue), lambda seen: name in missing_replicas(seen)))


def _without_majority(view: View, queues: Sequence[Queue], stopped: frozenset[str]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=queues_subject(view, queues),
        facts={**_facts(view, queues, stopped), "node": None, "other_node": other_node(view, None)},
        certainty=Certainty.CERTAIN,
        evidence=_evidence(queues, stopped),
        involved=_involved(queues, stopped),
    )


def _missing_on(view: View, name: str, seconds: float, queues: Sequence[Queue], stopped: frozenset[str]) -> Finding:
    lasting = seconds >= view.thresholds.cluster.replica_missing_for
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=node_subject(name),
        facts={
            **_facts(view, queues, stopped),
            "node": name,
            "node_stopped": name in stopped,
            "other_node": other_node(view, name),
        },
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY,
        seen_seconds=seconds,
        evidence=_evidence(queues, stopped),
        involved=_involved(queues, stopped),
    )


def _facts(view: View, queues: Sequence[Queue], stopped: frozenset[str]) -> dict[str, Fact]:
    return {
        **queue_list(queues),
        "first_queue": {"vhost": queues[0].vhost, "name": queues[0].name},
        "missing_nodes": _missing_nodes(queues, stopped),
        "warning_after_seconds": view.thresholds.cluster.replica_missing_for,
    }


def _evidence(queues: Sequence[Queue], stopped: frozenset[str]) -> tuple[Evidence, ...]:
    replicas = replicas_evidence(queues[0], stopped, "state")
    return (replicas, queues_evidence()) if len(queues) > 1 else (replicas,)


def _involved(queues: Sequence[Queue], stopped: frozenset[str]) -> Involved:
    return Involved(queues=queue_refs(queues), nodes=tuple(_missing_nodes(queues, stopped)))


def _missing_nodes(queues: Sequence[Queue], stopped: frozenset[str]) -> list[str]:
    return sorted({name for queue in queues for name in missing_replicas(queue, stopped)})
