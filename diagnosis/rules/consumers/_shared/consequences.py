"""Relations between causes about connections and their consequences."""

from collections.abc import Hashable, Iterable

from ackscope.findings import Finding
from diagnosis.contract import Relation, View
from diagnosis.facts import client_name
from diagnosis.relations import both


def _queues_of_connection(view: View, finding: Finding) -> Iterable[Hashable]:
    return view.queues_consumed(finding.subject.name)


def queue_key(_view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the key of the queue that a finding is about."""
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_OF_CONNECTION = Relation(_queues_of_connection, queue_key)
"""The cause is a connection; the effect is about a queue that it consumes from."""


def connection_names(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the names under which a finding about a connection can be found: the connection's and the client's."""
    name = finding.subject.name
    return {name, client_name(view.connection(name), name)} if finding.subject.kind == "connection" else ()


def client_keys(_view: View, finding: Finding) -> Iterable[Hashable]:
    """Return the connections that a finding involves, and the names of its clients with their virtual host."""
    names = [("connection", name) for name in finding.involved.connections]
    return (*names, *(("client", finding.subject.vhost, name) for name in finding.involved.clients))


SAME_CLIENT = both(client_keys)
"""Both involve a connection of the same client, or clients of one name in one virtual host."""


def _only_queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    queues = finding.involved.queues
    return [(each.vhost, each.name) for each in queues] if len(queues) == 1 else ()


ONLY_QUEUE = Relation(_only_queue, queue_key)
"""The cause involves one queue; the effect is about it. A cause that names several does not know which one it is."""


ABOUT_THIS_QUEUE_ONLY = Relation(queue_key, _only_queue)
"""The cause is about a queue; the effect involves this one and no other, whatever its subject is."""
