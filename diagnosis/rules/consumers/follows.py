"""What follows when the messages of a queue are not worked off."""

from collections.abc import Hashable, Iterable

from ackscope.reports import FindingReport
from diagnosis.contract import Explains, Relation, View
from diagnosis.relations import SAME_SUBJECT
from diagnosis.words import client

BACKLOG = Explains(("queue-overload", "stale-head", "maxlen-drop-head", "ttl-expiry-loss"), SAME_SUBJECT)
"""They wait, grow old, and run into limits."""


def _queues_of(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """The queues that a connection consumes from."""
    consumers = view.part("consumers")
    return {(each.vhost, each.queue) for each in consumers if each.connection_name == finding.subject.name}


def _queue(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_OF_CONNECTION = Relation(_queues_of, _queue)
"""The cause is a connection, and what follows is about a queue that it consumes from."""


def names_of(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """What a finding about a connection may be known by: its name, and that of its client."""
    if finding.subject.kind != "connection":
        return ()
    return {finding.subject.name, client(view.connection(finding.subject.name), finding.subject.name)}
