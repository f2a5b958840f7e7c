"""Replicas of queues: which are missing, whether a majority is left, and findings about many queues."""

from collections.abc import Sequence

from ackscope.findings import Evidence, Fact, QueueRef, Subject, source
from ackscope.snapshot import Queue
from diagnosis.facts import queue_ref
from diagnosis.rules.nodes._shared.node_history import cluster_subject, trailing
from diagnosis.series import span
from diagnosis.view import View

FEW = 5
"""Queues with the same fate that are findings of their own; more of them are one finding."""

_LISTED = 5
_INVOLVED = 100
"""Queues that one finding names at most, in its facts and among what is involved."""


def missing_replicas(queue: Queue, stopped: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The nodes whose replica of a queue is missing.

    `online` is some seconds behind: it still names a node that has just stopped.
    """
    members = queue.members or ()
    online = members if queue.online is None else queue.online
    return tuple(sorted(name for name in members if name not in online or name in stopped))


def online_count(queue: Queue, stopped: frozenset[str]) -> int:
    """Replicas that answer."""
    return len(queue.members or ()) - len(missing_replicas(queue, stopped))


def lost_majority(queue: Queue, stopped: frozenset[str]) -> bool:
    """Whether half of the replicas or more are missing, by this one reading."""
    members = queue.members or ()
    if queue.state == "minority":
        return True
    return bool(members) and 2 * len(missing_replicas(queue, stopped)) >= len(members)


def majority_stopped(queue: Queue, stopped: frozenset[str]) -> bool:
    """Whether half of the nodes of its replicas or more do not run, whatever the queue itself reports."""
    members = queue.members or ()
    return bool(members) and 2 * sum(name in stopped for name in members) >= len(members)


def minority_seconds(view: View, queue: Queue) -> float:
    """For how long its own readings have shown that the majority is missing."""
    return span(trailing(view.history(queue), lambda seen: lost_majority(seen, frozenset())))


def queues_subject(view: View, queues: Sequence[Queue]) -> Subject:
    """The queue if there is one, else what all of them are in: a vhost, or the cluster."""
    if len(queues) == 1:
        queue = queues[0]
        return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.leader or queue.node)
    vhosts = {queue.vhost for queue in queues}
    if len(vhosts) == 1:
        return Subject(kind="vhost", name=min(vhosts))
    return cluster_subject(view)


def bundles(queues: Sequence[Queue]) -> tuple[tuple[Queue, ...], ...]:
    """What findings are about: each queue by itself while they are few, else all of them together."""
    ranked = sorted(queues, key=lambda queue: queue.key)
    return tuple((queue,) for queue in ranked) if len(ranked) <= FEW else (tuple(ranked),)


def queue_list(queues: Sequence[Queue]) -> dict[str, Fact]:
    """Queues as the macros `which_queues` and `queue_names` take them.

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
    """The queues of a finding by name; the page has them from its facts."""
    return Evidence(key="queues", source=source("/api/queues", *fields))
