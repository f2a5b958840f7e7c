"""queue-deleted: a queue was deleted together with messages that were in it, and perhaps declared again.

The broker counts such messages nowhere, does not dead-letter them, and does not report who deleted the queue. What
shows it is a queue that is not listed any more, or whose counters begin again while its node goes on. The number is
that of the last reading, without what consumers may have settled until the next one. Where the setting expires explains
a deletion, it is queue-expired.

Queues that go together with their virtual host are one finding. The list of virtual hosts proves it: a user with the
tag monitoring, which nodes are listed for, sees all of them, also those that it has no permissions in.
Source: https://www.rabbitmq.com/docs/queues#temporary-queues; seen on 3.10, 4.0 and 4.3
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.preconditions import if_known
from diagnosis.relations import ANYWHERE
from diagnosis.rules.queues._shared.deletions import Deletion, deletions_of, is_by_expiry, node_started
from diagnosis.rules.queues._shared.queue import MAX_NAMED, NAMED_BY_BROKER, is_lasting, queue_refs, queue_subject

NAME = "queue-deleted"

_EACH = 5
"""More queues of one virtual host than this that are deleted together are one finding."""
_TOGETHER = 15.0
"""Maximum seconds from one deletion to the next of those that belong together."""


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A queue that was deleted, at least once.

    Attributes:
        again: whether a queue of its name exists now.
    """

    queue: Queue
    deletions: tuple[Deletion, ...]
    again: bool

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.deletions)

    @property
    def missed(self) -> bool:
        """Whether somebody misses its messages: it was made to last, or an application loses them each time."""
        return len(self.deletions) > 1 or is_lasting(self.queue)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that was deleted within the window; many of one virtual host are one finding."""
    if not view.fresh("nodes") or not view.fresh("queues"):
        return
    found = [each for key in view.interrupted_queues(1) if (each := _deleted(view, key)) is not None]
    for vhost, group in groupby(found, key=lambda each: each.queue.vhost):
        for deleted in _together(group):
            vhost_state = _vhost_state(view, deleted)
            # Without a newer list, several queues that leave none behind are one finding from the beginning.
            if len(deleted) > _EACH or vhost_state.deleted or (vhost_state.exists is None and len(deleted) > 1):
                yield _of_vhost(view, vhost, deleted, vhost_state)
            else:
                yield from (_of_queue(each, vhost_state) for each in deleted)


@dataclass(frozen=True, slots=True)
class _VHostState:
    """What is known of the virtual host of some deleted queues.

    Attributes:
        exists: whether it still exists; None if no list of virtual hosts is new enough to tell.
        deleted: whether it was deleted together with these queues.
        queue_count: queues that were deleted with it, also empty ones; 0 if it was not.
    """

    exists: bool | None
    deleted: bool = False
    queue_count: int = 0


def _vhost_state(view: View, deleted: list[_Deleted]) -> _VHostState:
    vhost, final = deleted[0].queue.vhost, deleted[-1].deletions[-1]
    if any(queue.vhost == vhost for queue in view.every_queue):
        return _VHostState(exists=True)
    readings = view.window.readings("vhosts")
    listed = readings[-1] if readings else None
    # A list older than the last reading of the queues is from before. One without any virtual host is none.
    if listed is None or not listed.value or listed.at.mono < final.before.at.mono:
        return _VHostState(exists=None)
    if any(each.name == vhost for each in listed.value):
        return _VHostState(exists=True if listed.at.mono >= final.after.mono else None)
    ended = view.ended_queues(vhost)
    seen = [
        reading.at for reading in view.window.readings("queues") if any(queue.vhost == vhost for queue in reading.value)
    ]
    latest = max((each.mono for each in (*seen, *(each.readings[-1][0] for each in ended))), default=0.0)
    # Others of its queues were there for longer, so these were deleted before it.
    if latest - final.after.mono > _TOGETHER:
        return _VHostState(exists=False)
    first = deleted[0].deletions[-1].after.mono
    with_it = {each.queue.key for each in ended if each.successor is None and each.after.mono >= first}
    return _VHostState(False, deleted=True, queue_count=len(with_it | {each.queue.key for each in deleted}))


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
        for each in deletions_of(presence)
        if each.lost >= view.limits(each.before.value).queues.loss_least and not node_started(view, each)
    )
    # Where the setting is unknown, the text names expiry as one of the reasons.
    if not deletions or if_known(lambda: is_by_expiry(view, deletions), otherwise=False):
        return None
    queue, again = deletions[-1].before.value, presence[-1][1] is not None
    # A queue for replies goes with its client, and nobody waits for what is in it.
    for_one_client = queue.exclusive is True or queue.name.startswith(NAMED_BY_BROKER)
    if not again and for_one_client and len(deletions) == 1:
        return None
    return _Deleted(queue, deletions, again)


def _severity(deleted: list[_Deleted]) -> Severity:
    return Severity.WARNING if any(each.missed for each in deleted) else Severity.INFO


def _of_queue(each: _Deleted, vhost_state: _VHostState) -> Finding:
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
            "vhost_exists": vhost_state.exists,
            "messages": final.before.value.messages,
            "lost": each.lost,
            "times": len(each.deletions),
            "again": each.again,
            "auto_delete": queue.auto_delete is True,
            "exclusive": queue.exclusive is True,
            "had_consumer": bool(queue.consumers),
            "expires": queue.settings_known and queue.setting("expires") is not None,
            "settings_known": queue.settings_known,
        },
        certainty=Certainty.CERTAIN if not each.again else Certainty.LIKELY,
        evidence=_evidence([each]),
        involved=Involved(queues=queue_refs([queue])),
    )


def _of_vhost(view: View, vhost: str, deleted: list[_Deleted], vhost_state: _VHostState) -> Finding:
    lost = sum(each.lost for each in deleted)
    missing = [Evidence(key="vhost", value=0, source=source("/api/vhosts", "name"))] if vhost_state.deleted else []
    return Finding(
        rule=NAME,
        severity=_severity(deleted),
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.deletions[0].after.iso() for each in deleted),
        accounted=lost,
        facts={
            "queue": None,
            "vhost": vhost,
            "vhost_exists": vhost_state.exists,
            "vhost_deleted": vhost_state.deleted,
            "queue_count": max(vhost_state.queue_count, len(deleted)),
            "queues": [each.queue.name for each in deleted[:MAX_NAMED]],
            "lost": lost,
            "times": sum(len(each.deletions) for each in deleted),
            "all_queues": not any(queue.vhost == vhost for queue in view.all_queues),
        },
        certainty=Certainty.CERTAIN if vhost_state.deleted else Certainty.LIKELY,
        evidence=(*_evidence(deleted), *missing),
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


def _vhost_is_gone(view: View, finding: Finding) -> Iterable[Hashable]:
    return ANYWHERE.of_cause(view, finding) if finding.facts.get("vhost_deleted") else ()


REFUSES_CLIENTS = Relation(_vhost_is_gone, ANYWHERE.of_other)
"""A virtual host was deleted, and its clients are refused when they connect; which one they ask for is unknown."""
