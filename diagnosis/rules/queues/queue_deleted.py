"""queue-deleted: a queue was deleted together with messages that were in it, and perhaps declared again.

The broker counts such messages nowhere, does not dead-letter them, and does not report who deleted the queue. What
shows it is a queue that is not listed any more, or whose counters begin again while its node goes on. The number is
that of the last reading, without what consumers may have settled until the next one.
Source: https://www.rabbitmq.com/docs/queues#temporary-queues; seen on 3.10, 4.0 and 4.3
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import levels, settled_after
from diagnosis.purpose import CONSUMED
from diagnosis.rules.queues._shared.queue import MAX_NAMED, is_private, queue_refs, queue_subject
from diagnosis.rules.queues.queue_expired import expired
from diagnosis.series import count, restarted, stretch
from diagnosis.window import Timestamped

NAME = "queue-deleted"

_STARTING = 30.0
"""Seconds around the start of a node in which the list of queues and their counters prove nothing."""
_ABSENT = 2
"""Minimum readings in a row without the queue."""
_EACH = 5
"""More queues of one virtual host than this that are deleted together are one finding."""
_PACE_KNOWN = 15.0
"""Seconds from the last reading of a queue to its absence, up to which the pace of its consumers still counts."""
_TOGETHER = 15.0
"""Maximum seconds from one deletion to the next of those that belong together."""


@dataclass(frozen=True, slots=True)
class _Deletion:
    """One deletion of a queue.

    Attributes:
        before: the last reading of the queue.
        after: the first reading without it, or with the new queue of its name.
        lost: minimum of messages deleted with it.
    """

    before: Timestamped[Queue]
    after: Instant
    lost: int


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A queue that was deleted, at least once.

    Attributes:
        again: whether a queue of its name exists now.
    """

    queue: Queue
    deletions: tuple[_Deletion, ...]
    again: bool

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.deletions)

    @property
    def missed(self) -> bool:
        """Whether somebody misses its messages: it was made to last, or an application loses them each time."""
        return len(self.deletions) > 1 or (self.queue.durable is True and not is_private(self.queue))


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that was deleted within the window; many of one virtual host are one finding."""
    if not view.fresh("nodes") or not view.fresh("queues"):
        return
    found = [each for key in view.interrupted_queues(1) if (each := _deleted(view, key)) is not None]
    for vhost, group in groupby(found, key=lambda each: each.queue.vhost):
        for deleted in _together(group):
            if len(deleted) > _EACH:
                yield _of_vhost(view, vhost, deleted)
            else:
                yield from map(_of_queue, deleted)


def _together(deleted: Iterable[_Deleted]) -> Iterator[list[_Deleted]]:
    """Yield the queues that were deleted at about one time, and each queue that exists again alone."""
    group: list[_Deleted] = []
    for each in sorted(deleted, key=lambda each: each.deletions[-1].after.mono):
        if each.again:
            yield [each]
            continue
        if group and each.deletions[-1].after.since(group[-1].deletions[-1].after) > _TOGETHER:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _deleted(view: View, key: tuple[str, str]) -> _Deleted | None:
    presence = view.presence(key)
    deletions = tuple(
        each
        for each in _deletions(presence)
        if each.lost >= view.limits(each.before.value).queues.loss_least and not _node_started(view, each)
    )
    if not deletions:
        return None
    queue, again = deletions[-1].before.value, presence[-1][1] is not None
    # A queue for replies goes with its client, and nobody waits for what is in it.
    for_one_client = queue.exclusive is True or queue.name.startswith("amq.gen")
    if not again and (expired(view, queue) is not None or (for_one_client and len(deletions) == 1)):
        return None
    return _Deleted(queue, deletions, again)


def _deletions(presence: list[tuple[Instant, Queue | None]]) -> Iterator[_Deletion]:
    """Yield the deletions that the readings of one queue show, oldest first."""
    history: list[Timestamped[Queue]] = []
    absent: list[Instant] = []
    is_young = False
    for at, queue in presence:
        if queue is None:
            absent.append(at)
        elif queue.messages is not None:
            # Without a length, the queue is new, or its node does not answer.
            if history and restarted(history[-1].value.stats, queue.stats):
                yield _deletion(history, absent[0] if absent else at, _recovered(queue), is_young=is_young)
                history = []
            if not history:
                is_young = bool(absent)
            history.append(Timestamped(at, queue))
            absent = []
    if history and len(absent) >= _ABSENT:
        yield _deletion(history, absent[0], 0, is_young=is_young)


def _recovered(queue: Queue) -> int:
    """Return how many messages a queue has that were not published since its counters began.

    They are those of the queue before, so only the counters began again: a leader moved, or statistics were reset.
    """
    return max(0, (queue.messages or 0) - count(queue.stats, "publish"))


def _deletion(history: list[Timestamped[Queue]], after: Instant, recovered: int, *, is_young: bool) -> _Deletion:
    """Return the deletion after some readings of a queue; it is young if an earlier reading was without it."""
    before = history[-1]
    known = stretch(tuple(history), lambda _, newer: levels(newer.value) is not None)
    away = after.since(before.at)
    settled = settled_after(known, away)
    # Older readings are further apart: the one left of a short life tells no pace, or the last one is too old.
    brief = is_young and len(known) == 1 and count(before.value.stats, *CONSUMED) > 0
    if brief or (settled and away > _PACE_KNOWN):
        settled = before.value.messages or 0
    return _Deletion(before, after, max(0, (before.value.messages or 0) - settled - recovered))


def _node_started(view: View, deletion: _Deletion) -> bool:
    """Return whether a node started around a deletion, or its own is down: then queues and counters are not listed."""
    queue = deletion.before.value
    own = view.node(queue.leader or queue.node)
    if own is not None and not own.running:
        return True
    return any(
        node.running
        and (node.uptime_seconds is None or view.now.mono - node.uptime_seconds > deletion.before.at.mono - _STARTING)
        for node in view.nodes
    )


def _severity(deleted: list[_Deleted]) -> Severity:
    return Severity.WARNING if any(each.missed for each in deleted) else Severity.INFO


def _of_queue(each: _Deleted) -> Finding:
    queue, final = each.queue, each.deletions[-1]
    return Finding(
        rule=NAME,
        severity=_severity([each]),
        subject=queue_subject(queue),
        since=each.deletions[0].after.iso(),
        accounted=each.lost,
        facts={
            "queue": queue_facts(queue),
            "queue_count": 1,
            "messages": final.before.value.messages,
            "lost": each.lost,
            "times": len(each.deletions),
            "again": each.again,
            "auto_delete": queue.auto_delete is True,
            "exclusive": queue.exclusive is True,
            "had_consumer": bool(queue.consumers),
            "expires": queue.setting("expires") is not None,
        },
        certainty=Certainty.CERTAIN if not each.again else Certainty.LIKELY,
        evidence=_evidence([each]),
        involved=Involved(queues=queue_refs([queue])),
    )


def _of_vhost(view: View, vhost: str, deleted: list[_Deleted]) -> Finding:
    lost = sum(each.lost for each in deleted)
    return Finding(
        rule=NAME,
        severity=_severity(deleted),
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.deletions[0].after.iso() for each in deleted),
        accounted=lost,
        facts={
            "queue": None,
            "vhost": vhost,
            "queue_count": len(deleted),
            "queues": [each.queue.name for each in deleted[:MAX_NAMED]],
            "lost": lost,
            "times": sum(len(each.deletions) for each in deleted),
            "all_queues": not any(queue.vhost == vhost for queue in view.all_queues),
        },
        certainty=Certainty.LIKELY,
        evidence=_evidence(deleted),
        involved=Involved(queues=queue_refs(each.queue for each in deleted)),
    )


def _evidence(deleted: list[_Deleted]) -> tuple[Evidence, ...]:
    deletions = [deletion for each in deleted for deletion in each.deletions]
    messages = sum(each.before.value.messages or 0 for each in deletions)
    return (
        Evidence(key="messages", value=messages, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
        Evidence(
            key="lost",
            value=sum(each.lost for each in deleted),
            unit=Unit.MESSAGES,
            source=source("/api/queues", "messages", "message_stats.ack"),
        ),
        Evidence(
            key="deletions",
            value=len(deletions),
            source=source("/api/queues", "name", "message_stats"),
        ),
    )


def _exchanges(view: View, finding: Finding) -> Iterable[Hashable]:
    deleted = {(each.vhost, each.name) for each in finding.involved.queues}
    yield from {(vhost, "") for vhost, _ in deleted}
    # Bindings that did not change between readings are the same object.
    for bindings in {id(seen.value): seen.value for seen in view.window.readings("bindings")}.values():
        for each in bindings.listed or ():
            if (each.vhost, each.destination) in deleted and each.destination_type == "queue":
                yield (each.vhost, each.source)


def _exchange(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "exchange" else ()


EXCHANGES_OF_DELETED_QUEUES = Relation(_exchanges, _exchange)
"""The cause is a deleted queue; the effect is about an exchange that it was bound to, or the default exchange."""
