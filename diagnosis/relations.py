"""Relations that `Explains.where` may use: when a finding of one rule explains a finding of another."""

from collections.abc import Hashable, Iterable

from ackscope.findings import Finding
from diagnosis.contract import Keys, Relation
from diagnosis.view import View


def _anywhere(_view: View, _finding: Finding) -> Iterable[Hashable]:
    return ((),)


def _node(_view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.subject.node is None else (finding.subject.node,)


def _vhost(_view: View, finding: Finding) -> Iterable[Hashable]:
    name = finding.subject.name if finding.subject.kind == "vhost" else finding.subject.vhost
    return () if name is None else (name,)


def _subject(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.kind, finding.subject.vhost, finding.subject.name),)


def _connection(view: View, finding: Finding) -> Iterable[Hashable]:
    if finding.subject.kind == "connection":
        return (finding.subject.name,)
    if finding.subject.kind != "channel":
        return ()
    name = view.connection_of(finding.subject.name)
    return () if name is None else (name,)


def _involved_queues(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((queue.vhost, queue.name) for queue in finding.involved.queues)


def _queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


def both(keys: Keys) -> Relation:
    """Return a relation in which the cause and its consequence have the same keys."""
    return Relation(keys, keys)


ANYWHERE = both(_anywhere)
"""The cause concerns the whole cluster."""
SAME_NODE = both(_node)
"""Both are about the same node, or about something on that node."""
SAME_VHOST = both(_vhost)
"""Both are in the same virtual host, which may be the subject itself."""
SAME_SUBJECT = both(_subject)
"""Both have the same subject."""
SAME_CONNECTION = both(_connection)
"""Both are about the same connection or one of its channels."""
INVOLVED_QUEUES = Relation(_involved_queues, _queue)
"""The cause involves several queues; the consequence is about one of them."""
