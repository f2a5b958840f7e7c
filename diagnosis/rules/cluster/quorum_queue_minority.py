"""quorum-queue-minority (E04): most replicas of a quorum queue are missing, so it confirms and delivers nothing.

Publishers get no ack, no nack and no return. The broker's alarms and aliveness checks stay fine. 3.10 still reports
such a queue as "running": there its replicas are counted.
Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.records import ProbeState
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import other_node, stopped_nodes
from diagnosis.rules.cluster._shared.replica_state import (
    bundles,
    confirmed_lost_majority,
    lost_majority,
    missing_replicas,
    queue_list,
    queue_refs,
    queues_evidence,
    queues_subject,
    replicas_evidence,
)
from diagnosis.rules.nodes._shared.node_history import trailing
from diagnosis.rules.probing._shared.outcomes import stream_name

NAME = "quorum-queue-minority"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding for each quorum queue without a majority, or one for all where there are many."""
    stopped = stopped_nodes(view)
    lost = [
        queue for queue in view.all_queues if queue.type == "quorum" and confirmed_lost_majority(view, queue, stopped)
    ]
    for queues in bundles(lost):
        yield _finding(view, queues, stopped)


def _finding(view: View, queues: Sequence[Queue], stopped: frozenset[str]) -> Finding:
    missing = sorted({name for queue in queues for name in missing_replicas(queue, stopped)})
    since = min(
        (
            seen[0].at
            for queue in queues[:50]
            if (seen := trailing(view.history(queue), lambda q: lost_majority(q, stopped)))
        ),
        key=lambda at: at.mono,
        default=None,
    )
    first = queues[0]
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=queues_subject(view, queues),
        since=since.iso() if since else None,
        facts={
            **queue_list(queues),
            "first_queue": {"vhost": first.vhost, "name": first.name},
            "messages": sum(queue.messages or 0 for queue in queues),
            "missing_nodes": missing,
            "stopped_nodes": [name for name in missing if name in stopped],
            "other_node": other_node(view, None),
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(_evidence(view, queues, stopped, missing)),
        involved=Involved(
            queues=queue_refs(queues),
            nodes=tuple(missing),
            channels=tuple(sorted(channel.name for channel in _waiting_channels(view))[:20]),
        ),
    )


def _evidence(
    view: View, queues: Sequence[Queue], stopped: frozenset[str], missing: Sequence[str]
) -> Iterator[Evidence]:
    first = queues[0]
    yield replicas_evidence(first, stopped)
    if first.state not in {None, "running"}:
        where = source("/api/queues", "state")
        yield Evidence(key="state", value=first.state, source=where, facts={"queue_name": first.name})
    if missing:
        where = source("/api/nodes", "running") + source("/api/queues", "online")
        yield Evidence(key="missing_nodes", source=where)
    if len(queues) > 1:
        yield queues_evidence()
    probes = [
        outcome
        for outcome in view.outcomes_of("confirm")
        if outcome.queue_type == "quorum" and outcome.state is ProbeState.RUNNING and outcome.outstanding
    ]
    for outcome in probes[:1]:
        where = source(f"probe {stream_name(outcome)}", "outstanding")
        yield Evidence(key="probe", value=outcome.outstanding, source=where, facts={"stream": stream_name(outcome)})
    waiting = _waiting_channels(view)
    if waiting:
        yield Evidence(
            key="channels",
            value=sum(channel.messages_unconfirmed or 0 for channel in waiting),
            source=source("/api/channels", "messages_unconfirmed", "pending_raft_commands"),
            facts={"channels": sorted(channel.name for channel in waiting)[:2], "channel_count": len(waiting)},
        )


def _waiting_channels(view: View) -> list[Channel]:
    """Channels of applications that wait for confirms of quorum queues."""
    return [each for each in view.channels if each.pending_raft_commands and each.messages_unconfirmed]
