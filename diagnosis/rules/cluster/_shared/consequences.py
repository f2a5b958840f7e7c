"""Relates findings about nodes that are down and replicas that are missing to their consequences."""

from collections.abc import Hashable, Iterable

from ackscope.findings import Finding
from ackscope.snapshot import Queue
from diagnosis.contract import Relation
from diagnosis.rules.cluster._shared.cluster_state import stopped_nodes
from diagnosis.rules.cluster._shared.replica_state import missing_replicas
from diagnosis.view import View


def _nodes_of_cause(_view: View, finding: Finding) -> Iterable[Hashable]:
    return (finding.subject.node or finding.subject.name,)


def _nodes_of_other(view: View, finding: Finding) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "node":
        return (subject.name,)
    stopped = stopped_nodes(view)
    if subject.kind != "queue":
        return stopped
    queue = view.any_queue(subject.vhost, subject.name)
    if queue is None:
        return stopped
    # A finding that has just ended stays for a short time although its replicas are back.
    return missing_replicas(queue, stopped) or queue.members or stopped


REPLICAS_ON_NODE = Relation(_nodes_of_cause, _nodes_of_other)
"""The cause is a node; the consequence is about queues that have, or should have, a replica on it."""


def _queues_of_cause(view: View, finding: Finding) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "node":
        # Replicas are missing on one node, and a majority is left: nothing stops.
        return ()
    if subject.kind == "queue":
        return ((subject.vhost, subject.name), (subject.vhost, None))
    vhosts = {subject.name} if subject.kind == "vhost" else {queue.vhost for queue in view.all_queues if _stops(queue)}
    stopped = [(queue.vhost, queue.name) for queue in view.all_queues if queue.vhost in vhosts and _stops(queue)]
    return (*stopped, *((vhost, None) for vhost in sorted(vhosts)))


def _stops(queue: Queue) -> bool:
    return queue.state in {"minority", "down"} or 2 * len(missing_replicas(queue)) > len(queue.members or ())


def _queues_of_other(_view: View, finding: Finding) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "vhost":
        return ((subject.name, None),)
    return ((subject.vhost, subject.name if subject.kind == "queue" else None),)


AFFECTED_QUEUES = Relation(_queues_of_cause, _queues_of_other)
"""The consequence is about a queue that the cause stops, or about a client of its vhost."""
