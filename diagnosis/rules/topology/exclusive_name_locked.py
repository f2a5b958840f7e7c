"""exclusive-name-locked (G07): an application cannot declare its exclusive queue: another connection owns the name.

The broker answers 405 RESOURCE_LOCKED and closes the channel. The owner is often the previous connection of the same
application, which the broker considers alive until it misses heartbeats. Which queue it is follows from the length of
the broker's error text (see `diagnosis.churn_loops`).

An exclusive queue is deleted with the connection of its owner, so that is open. The connection of a process that died
keeps its consumer. So a queue without a consumer, while messages wait, belongs to a client that hangs or left it. Where
the API does not name the owner (the list of queues does not), it is probably the other connection of the same client.
Source: https://www.rabbitmq.com/docs/queues#exclusive-queues
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.rules.clients._shared.loops import loop_evidence, loop_facts, loop_involved
from diagnosis.rules.consumers._shared.objects import connection_peer
from diagnosis.rules.queues._shared.queue import certainty
from diagnosis.series import delta, span, stretch
from diagnosis.window import Timestamped

NAME = "exclusive-name-locked"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which the broker's error is as long as that about a locked queue."""
    for closing in churn_loops(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        locked = locked_queues(view, closing)
        if locked:
            yield _finding(view, closing, locked)


def locked_queues(view: View, closing: ChurnLoop) -> tuple[Queue, ...]:
    """Return the exclusive queues of the loop's virtual host whose error text has the length of the loop's."""
    if closing.error is None:
        return ()
    vhost = closing.connection.vhost
    return tuple(
        queue
        for queue in view.all_queues
        if queue.exclusive and queue.vhost == vhost and closing.said(*error_texts(queue.name, queue.vhost))
    )


def error_texts(queue: str, vhost: str) -> tuple[str, str]:
    """Return the broker's error text without and with the sentence added after 3.7, not yet cut at 255 bytes."""
    first = f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'"
    more = (
        ". It could be originally declared on another connection or the exclusive property value does not match "
        "that of the original declaration."
    )
    return first, first + more


def _connection_of(_view: View, finding: Finding) -> Iterator[tuple[str | None, str]]:
    if finding.subject.kind == "connection":
        yield (finding.subject.vhost, finding.subject.name)


def _loops_of(view: View, finding: Finding) -> Iterator[tuple[str | None, str]]:
    for closing in churn_loops(view):
        if any(queue.key == (finding.subject.vhost, finding.subject.name) for queue in locked_queues(view, closing)):
            yield (closing.subject.vhost, closing.subject.name)


LOOPS_OF_REFUSED_DECLARES = Relation(_loops_of, _connection_of)
"""The cause is a locked queue; the consequence is about the loop of channels that try to declare it."""


@dataclass(frozen=True, slots=True)
class _Owner:
    """The connection that a queue belongs to.

    Attributes:
        named: whether the API names it, else it is the only one that it can be by its name.
        consumes: whether it has a consumer on the queue.
    """

    connection: Connection
    named: bool
    consumes: bool

    def facts(self) -> dict[str, Fact]:
        return {
            "client": client_name(self.connection),
            "peer": connection_peer(self.connection) or None,
            "user": self.connection.user,
            "connection": self.connection.name,
            "named": self.named,
            "consumes": self.consumes,
        }


def _owner(view: View, closing: ChurnLoop, queue: Queue) -> _Owner | None:
    """Return the owner of a queue; None if it is not known."""
    refused = closing.connection
    same = [
        each
        for each in view.connections
        if refused.client_name
        and (each.vhost, each.client_name, each.user) == (refused.vhost, refused.client_name, refused.user)
        and each.name != refused.name
    ]
    found = view.connection(queue.owner) or (same[0] if len(same) == 1 and queue.owner is None else None)
    if found is None:
        return None
    consumes = bool(queue.consumers) or queue.key in view.queues_consumed(found.name)
    return _Owner(found, queue.owner is not None, consumes)


def _waits(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether messages waited between two readings, and nobody consumed or polled them."""
    both = (older, newer)
    return (
        all(each.value.consumers == 0 and each.value.messages_ready for each in both)
        and delta(both, "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty") == 0
    )


def _finding(view: View, closing: ChurnLoop, locked: tuple[Queue, ...]) -> Finding:
    queue = locked[0]
    limit = view.thresholds.clients.refused_for
    owner = _owner(view, closing, queue) if len(locked) == 1 else None
    idle = span(stretch(view.history(queue), _waits)) if len(locked) == 1 else 0.0
    left = idle >= view.thresholds.early and not (owner is not None and owner.consumes)
    severity = Severity.WARNING if left or closing.lasts >= limit else Severity.INFO
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "queue": queue_facts(queue),
            "candidates": [each.name for each in locked],
            "owner": None if owner is None else owner.facts(),
            "owner_left": left,
            "idle_seconds": idle,
            "ready": queue.messages_ready or 0,
            "warning_after_seconds": limit,
        },
        certainty=certainty(severity, closing.lasts, limit),
        seen_seconds=closing.lasts,
        evidence=(
            *loop_evidence(closing, "channel"),
            Evidence(
                key="candidates", source=source("/api/queues", "exclusive") + source("/api/connections", "send_oct")
            ),
            *_owner_evidence(queue, owner, left=left),
        ),
        involved=replace(loop_involved(closing), queues=tuple(map(queue_ref, locked))),
    )


def _owner_evidence(queue: Queue, owner: _Owner | None, *, left: bool) -> Iterator[Evidence]:
    if owner is not None:
        named = (
            source("/api/queues", "owner_pid_details")
            if owner.named
            else source("/api/connections", "client_properties")
        )
        yield Evidence(key="owner", source=named + source("/api/consumers", "queue"), facts={"owner": owner.facts()})
    if not left:
        return
    yield Evidence(key="consumers", value=queue.consumers or 0, source=source("/api/queues", "consumers"))
    yield Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready"),
    )
