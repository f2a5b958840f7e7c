"""Which nodes run, which replicas are away, and since when: what the rules of this group share."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from ackscope.findings import Subject
from ackscope.reports import FindingReport
from ackscope.snapshot import Node, Queue
from diagnosis.contract import Relation
from diagnosis.kept import kept
from diagnosis.series import span
from diagnosis.view import View
from diagnosis.window import Series
from diagnosis.words import amount, some

T = TypeVar("T")

FEW = 5
"""Queues that share a fate and are told one by one; more of them are one finding."""


def tail(series: Series[T], holds: Callable[[T], bool]) -> Series[T]:
    """The latest readings in a row of which `holds` is true; empty where it is not true of the last."""
    start = len(series)
    while start and holds(series[start - 1].value):
        start -= 1
    return series[start:]


def down(view: View) -> frozenset[str]:
    """Names of the nodes that do not run; of the others it is known, or not told."""
    return kept(view, _down)


def _down(view: View) -> frozenset[str]:
    return frozenset(node.name for node in view.nodes if node.running is False)


def gone(view: View) -> frozenset[str]:
    """Those of them that have not run for some readings: `online` of a queue may go on to name them."""
    return kept(view, _gone)


def _gone(view: View) -> frozenset[str]:
    return frozenset(name for name in down(view) if span(absence(view, name)) >= view.thresholds.cluster.seen)


def absence(view: View, name: str) -> Series[Node]:
    """The latest readings in a row in which a node does not run."""
    return tail(view.node_history(name), lambda node: node.running is False)


def running(view: View) -> tuple[Node, ...]:
    """The nodes that run, by name."""
    return tuple(sorted((node for node in view.nodes if node.running), key=lambda node: node.name))


def other(view: View, name: str | None) -> str:
    """A node that runs, to give commands to."""
    return next((node.name for node in running(view) if node.name != name), "RUNNING_NODE")


def missing(queue: Queue, stopped: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The nodes whose replica of a queue is away.

    `online` is some seconds behind: it still names a node that has just stopped.
    """
    members = queue.members or ()
    here = members if queue.online is None else queue.online
    return tuple(sorted(name for name in members if name not in here or name in stopped))


def title(queue: Queue) -> str:
    """A queue by its name and virtual host."""
    return f"{queue.name!r} ({queue.vhost!r})"


def listed(queues: Sequence[Queue], limit: int = 5) -> str:
    """Some queues by name, those with most messages first, and how many more there are."""
    ranked = sorted(queues, key=lambda queue: (-(queue.messages or 0), queue.key))
    return some([title(queue) for queue in ranked], limit)


def about(view: View, queues: Sequence[Queue]) -> Subject:
    """One queue where it is one, else what all of them are in: a virtual host, or the cluster."""
    if len(queues) == 1:
        queue = queues[0]
        return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.leader or queue.node)
    vhosts = {queue.vhost for queue in queues}
    if len(vhosts) == 1:
        return Subject(kind="vhost", name=min(vhosts))
    return Subject(kind="cluster", name=view.window.cluster)


def bundles(queues: Sequence[Queue]) -> tuple[tuple[Queue, ...], ...]:
    """What findings are about: each queue by itself while they are few, else all of them together."""
    ranked = sorted(queues, key=lambda queue: queue.key)
    return tuple((queue,) for queue in ranked) if len(ranked) <= FEW else (tuple(ranked),)


def told(queues: Sequence[Queue], noun: str) -> str:
    """One queue by name, many by number: `quorum queue 'orders' ('/')`, `12 quorum queues`."""
    return f"{noun} {title(queues[0])}" if len(queues) == 1 else amount(len(queues), noun)


def _nodes_of_cause(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return (finding.subject.node or finding.subject.name,)


def _nodes_of_other(view: View, finding: FindingReport) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "node":
        return (subject.name,)
    stopped = down(view)
    if subject.kind != "queue":
        return stopped
    queue = view.any_queue(subject.vhost, subject.name)
    if queue is None:
        return stopped
    # What ended just now is still told: then its replicas are back.
    return missing(queue, stopped) or queue.members or stopped


LACKING = Relation(_nodes_of_cause, _nodes_of_other)
"""The cause is a node; what follows is about queues that have, or should have, a replica there."""


def _queues_of_cause(view: View, finding: FindingReport) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "node":
        # Replicas are away from one node, and a majority is left: nobody is stopped.
        return ()
    if subject.kind == "queue":
        return ((subject.vhost, subject.name), (subject.vhost, None))
    vhosts = {subject.name} if subject.kind == "vhost" else {queue.vhost for queue in view.all_queues if _stops(queue)}
    stopped = [(queue.vhost, queue.name) for queue in view.all_queues if queue.vhost in vhosts and _stops(queue)]
    return (*stopped, *((vhost, None) for vhost in sorted(vhosts)))


def _stops(queue: Queue) -> bool:
    return queue.state in {"minority", "down"} or 2 * len(missing(queue)) > len(queue.members or ())


def _queues_of_other(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    subject = finding.subject
    if subject.kind == "vhost":
        return ((subject.name, None),)
    return ((subject.vhost, subject.name if subject.kind == "queue" else None),)


ITS_QUEUES = Relation(_queues_of_cause, _queues_of_other)
"""What follows is about a queue that the cause concerns, or about a client of its virtual host."""
