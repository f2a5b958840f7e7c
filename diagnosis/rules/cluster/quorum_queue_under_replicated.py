"""quorum-queue-under-replicated (E06): quorum queues with fewer replicas than they should have.

Two cases, told apart by the subject: replicas that are missing on one node (a node), and queues that were declared with
fewer than three members in a cluster of three nodes or more (a vhost): losing one node stops those.
The check `node-is-quorum-critical` is not used: it fails for every queue with a single member, and names no queue.
Source: https://www.rabbitmq.com/docs/quorum-queues#member-management
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import absence, confirmed_stopped, other_node, stopped_nodes
from diagnosis.rules.cluster._shared.replica_state import (
    lost_majority,
    missing_replicas,
    queue_list,
    queue_refs,
    queues_evidence,
    replicas_evidence,
)
from diagnosis.rules.nodes._shared.node_history import node_subject, trailing
from diagnosis.series import span

NAME = "quorum-queue-under-replicated"

_MIN_MEMBERS = 3
"""Minimum number of members that survives the loss of one."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding for each node with missing replicas, and one for each vhost with too few members."""
    missing: dict[str, list[Queue]] = defaultdict(list)
    small: dict[str, list[Queue]] = defaultdict(list)
    stopped = stopped_nodes(view)
    for queue in view.all_queues:
        if queue.type != "quorum" or not queue.members:
            continue
        if not lost_majority(queue, stopped):
            # Without a majority it is stopped already: quorum-queue-minority.
            for name in missing_replicas(queue, stopped):
                missing[name].append(queue)
        if len(queue.members) < _MIN_MEMBERS <= len(view.nodes):
            small[queue.vhost].append(queue)
    for name, queues in sorted(missing.items()):
        found = _missing_on(view, name, sorted(queues, key=lambda queue: queue.key), stopped)
        if found is not None:
            yield found
    for vhost, queues in sorted(small.items()):
        yield _too_few_members(view, vhost, sorted(queues, key=lambda queue: queue.key))


def _missing_on(view: View, name: str, queues: Sequence[Queue], stopped: frozenset[str]) -> Finding | None:
    limits = view.thresholds
    # The longest of a few queues is enough: all replicas on one node went missing at the same time.
    absent = max(
        (trailing(view.history(queue), lambda q: name in missing_replicas(q)) for queue in queues[:50]), key=span
    )
    since = absent[0].at if absent else None
    seconds = span(absent)
    if name in confirmed_stopped(view) and span(absence(view, name)) > seconds:
        since, seconds = absence(view, name)[0].at, span(absence(view, name))
    if seconds < (limits.cluster.seen if name in stopped else limits.early):
        return None
    lasting = seconds >= limits.cluster.replica_missing_for
    first = queues[0]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=node_subject(name),
        since=since.iso() if since else None,
        facts={
            **queue_list(queues),
            "first_queue": {"vhost": first.vhost, "name": first.name},
            "node": name,
            "node_state": _node_state(view, name, stopped),
            "other_node": other_node(view, name),
            "warning_after_seconds": limits.cluster.replica_missing_for,
        },
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY,
        seen_seconds=seconds,
        evidence=(
            replicas_evidence(first, stopped),
            queues_evidence("members", "online"),
        ),
        involved=Involved(nodes=(name,), queues=queue_refs(queues)),
    )


def _node_state(view: View, name: str, stopped: frozenset[str]) -> str:
    """Return stopped, maintenance, running, or running_or_maintenance (3.10 does not report maintenance)."""
    if name in stopped:
        return "stopped"
    node = view.node(name)
    if node is not None and node.being_drained:
        return "maintenance"
    return "running_or_maintenance" if node is not None and node.being_drained is None else "running"


def _too_few_members(view: View, vhost: str, queues: Sequence[Queue]) -> Finding:
    first = queues[0]
    free = sorted(node.name for node in view.nodes if node.name not in (first.members or ()))
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        facts={
            **queue_list(queues),
            "first_queue": {"vhost": first.vhost, "name": first.name},
            "node": None,
            "vhost": vhost,
            "member_counts": sorted({len(queue.members or ()) for queue in queues}),
            "nodes": len(view.nodes),
            "free_nodes": free,
            "messages": sum(queue.messages or 0 for queue in queues),
            "expected_members": _MIN_MEMBERS,
        },
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="few_members", source=source("/api/queues", "members")),
            Evidence(key="messages", source=source("/api/queues", "messages")),
        ),
        involved=Involved(queues=queue_refs(queues)),
    )
