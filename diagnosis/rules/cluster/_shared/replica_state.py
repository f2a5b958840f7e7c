"""Replicas of queues: which are missing, whether a majority is left, and findings about many queues."""

from collections.abc import Sequence

from ackscope.findings import Evidence, Fact, QueueRef, Subject, source
from ackscope.snapshot import Queue
from diagnosis.facts import queue_ref
from diagnosis.rules.cluster._shared.cluster_state import confirmed_stopped
from diagnosis.rules.nodes._shared.node_history import cluster_subject, trailing
from diagnosis.series import span
from diagnosis.view import View

FEW = 5
"""Maximum number of equally affected queues that get one finding each; more of them share one finding."""

_LISTED = 5
_INVOLVED = 100
"""Maximum number of queues that one finding names."""


def missing_replicas(queue: Queue, stopped: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The nodes whose replica of a queue is missing.

    `online` lags by some seconds: it still names a node that has just stopped.
    """
    members = queue.members or ()
    online = members if queue.online is None else queue.online
    return tuple(sorted(name for name in members if name not in online or name in stopped))


def online_count(queue: Queue, stopped: frozenset[str]) -> int:
    """Return the number of replicas that answer."""
    return len(queue.members or ()) - len(missing_replicas(queue, stopped))


def lost_majority(queue: Queue, stopped: frozenset[str]) -> bool:
    """Return whether half of the replicas or more are missing in this reading."""
    members = queue.members or ()
    if queue.state == "minority":
        return True
    return bool(members) and 2 * len(missing_replicas(queue, stopped)) >= len(members)


def majority_stopped(queue: Queue, stopped: frozenset[str]) -> bool:
    """Return whether half or more of the nodes with its replicas do not run, whatever the queue reports."""
    members = queue.members or ()
    return bool(members) and 2 * sum(name in stopped for name in members) >= len(members)


def minority_seconds(view: View, queue: Queue) -> float:
    """Return for how many seconds the queue's readings have shown a missing majority."""
    return span(trailing(view.history(queue), lambda seen: lost_majority(seen, frozenset())))


def confirmed_lost_majority(view: View, queue: Queue, stopped: frozenset[str]) -> bool:
    """Return whether the majority is missing, and not only because a new queue has few replicas at first.

    The broker's own state counts at once. A count of replicas needs several readings.
    """
    if not lost_majority(queue, stopped):
        return False
    if queue.state == "minority" or majority_stopped(queue, confirmed_stopped(view)):
        return True
    return minority_seconds(view, queue) >= view.thresholds.cluster.seen


def queues_subject(view: View, queues: Sequence[Queue]) -> Subject:
    """Return the subject: the queue if there is only one, else their common vhost, else the cluster."""
    if len(queues) == 1:
        queue = queues[0]
        return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.leader or queue.node)
    vhosts = {queue.vhost for queue in queues}
    if len(vhosts) == 1:
        return Subject(kind="vhost", name=min(vhosts))
    return cluster_subject(view)


def bundles(queues: Sequence[Queue]) -> tuple[tuple[Queue, ...], ...]:
    """Group queues for findings: one group per queue if they are few, else one group of all."""
    ranked = sorted(queues, key=lambda queue: queue.key)
    return tuple((queue,) for queue in ranked) if len(ranked) <= FEW else (tuple(ranked),)


def queue_list(queues: Sequence[Queue]) -> dict[str, Fact]:
    """Return queues as facts for the macros `which_queues` and `queue_names`.

    Returns:
        `{"queues", "queue_count"}`: the first five by messages as `{"vhost", "name"}`, and how many there are.
    """
    listed = [{"vhost": queue.vhost, "name": queue.name} for queue in _by_messages(queues)[:_LISTED]]
    return {"queues": listed, "queue_count": len(queues)}


def queue_refs(queues: Sequence[Queue]) -> tuple[QueueRef, ...]:
    """The first 100 queues by messages, by their identifiers."""
    return tuple(map(queue_ref, _by_messages(queues)[:_INVOLVED]))


def _by_messages(queues: Sequence[Queue]) -> list[Queue]:
    return sorted(queues, key=lambda queue: (-(queue.messages or 0), queue.key))


def replicas_evidence(queue: Queue, stopped: frozenset[str], *fields: str) -> Evidence:
    """How many replicas of a queue answer."""
    return Evidence(
        key="replicas",
        value=online_count(queue, stopped),
        source=source("/api/queues", "members", "online", *fields),
        facts={
            "queue_name": queue.name,
            "members": len(queue.members or ()),
            "majority": len(queue.members or ()) // 2 + 1,
            "state": queue.state,
        },
    )


def queues_evidence(*fields: str) -> Evidence:
    """Return evidence without a value for the queues of a finding; the page takes their names from the facts."""
    return Evidence(key="queues", source=source("/api/queues", *fields))
