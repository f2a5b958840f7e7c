"""Adds the node to probe records, because the broker knows where a queue is and the probe does not. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from ackscope.records import AckBurst, MessageRecord, ProbeOutcome, StepRecord
from ackscope.snapshot import Snapshot
from probes.queues import queue_name

QueueNodes = Mapping[tuple[str, str], str]
"""(virtual host, queue) -> node of the queue or of its leader."""

R = TypeVar("R", MessageRecord, AckBurst, StepRecord)


def probe_nodes(snapshot: Snapshot | None, prefix: str, addressed: Collection[str] = ()) -> QueueNodes:
    """Return the nodes of the probe queues that the snapshot shows.

    Args:
        snapshot: None before the first poll.
        prefix: prefix of the probe queues.
        addressed: probes that also run node by node. They name their node themselves. Their stream through the main
            address stays without a node, or two streams would have the same labels.
    """
    queues = (snapshot.queues.value if snapshot else None) or ()
    own, apart = f"{prefix}.", tuple(f"{prefix}.{probe}." for probe in addressed)
    return {
        queue.key: node
        for queue in queues
        if queue.name.startswith(own) and not queue.name.startswith(apart) and (node := queue.leader or queue.node)
    }


def assign_nodes(records: Iterable[R], nodes: QueueNodes, prefix: str) -> list[R]:
    """The records with their node filled in if it is known."""
    return [_place(record, nodes, queue_name(prefix, record.probe, record.stream)) for record in records]


def assign_outcome_nodes(outcomes: Iterable[ProbeOutcome], nodes: QueueNodes) -> list[ProbeOutcome]:
    """The summaries with their node filled in if it is known."""
    return [
        replace(outcome, node=nodes.get((outcome.vhost, outcome.queue), "")) if not outcome.node else outcome
        for outcome in outcomes
    ]


def _place(record: R, nodes: QueueNodes, queue: str) -> R:
    node = nodes.get((record.vhost, queue), "")
    return record if record.node or not node else replace(record, node=node)
