"""pub-nacked-overflow (A08): a full queue refuses what is published to it.

A publisher with confirms gets basic.nack; one without learns nothing, and its message is lost. The broker does not
count nacks, so two balances show them:

* of the queue: messages published but neither stored nor delivered (not used for a queue with a message TTL);
* of a channel in confirm mode: messages published but neither confirmed nor unconfirmed. A channel is named only where
  this fits what the queue refused in the same time.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from ackscope.findings import (
    Certainty,
    Evidence,
    Fact,
    Finding,
    Impact,
    Inconclusive,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import Keys, Relation, RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.relations import INVOLVED_QUEUES
from diagnosis.routes import dead_letters_from, dead_letters_to
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.publishers._shared.native_balance import balance, publishers_to, refused_links
from diagnosis.rules.publishers._shared.native_publishers import (
    SESSIONS,
    has_unreported_links,
    is_native,
    without_links,
)
from diagnosis.rules.publishers._shared.overflow import at_least_once, full_readings, held_dead_letters, level, refused
from diagnosis.rules.publishers._shared.refused_by_queue import (
    NackedPublisher,
    also_stored,
    fitting,
    nacked_publishers,
    queues_held_up,
)
from diagnosis.rules.publishers._shared.silent_publishers import SilentPublishers, silent_publishers
from diagnosis.rules.publishers._shared.starved_queues import waiting_behind
from diagnosis.rules.queues._shared.queue import queue_with_policy
from diagnosis.series import delta, last, span
from diagnosis.unattributed import suspect_facts, suspects
from diagnosis.window import Series

NAME = "pub-nacked-overflow"

_LIMITS = ("max-length", "max-length-bytes")
_EXPLAINED = 0.7
"""Share of the refused messages that nacks of known channels must reach, so that no other publisher is suspected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueue:
    """A queue at its limit.

    Attributes:
        recent: the readings that it is judged by.
        history: all readings of it.
        refused: messages refused in `recent`; None if unknown.
        nacked: channels whose nacked publishes fit that.
        silent: channels without confirms that may have published the rest.
        exchanges, others: exchanges that feed it together with other queues, and these.
        uncounted: whether AMQP 1.0 clients may publish to it or consume from it, and nothing counts that.
        suspects: AMQP 1.0 connections that may publish to it, if the broker does not report their links.
        sources: queues that dead-letter into it; no counter shows what arrives from them, or is refused.
        held_up: queues with unacknowledged messages that the refused publishers consume from.
        behind: idle queues whose messages may come after those that are refused.
        is_backpressure: whether its consumers acknowledge more than it refuses, and each refusal is a nack of a channel
            in confirm mode. A client that publishes again what is nacked loses nothing and is only slowed.
        dead_lettered_to: queues that get what is refused; None if it is not dead-lettered.
    """

    queue: Queue
    recent: Series[Queue]
    history: Series[Queue]
    refused: int | None
    nacked: tuple[NackedPublisher, ...]
    silent: SilentPublishers
    exchanges: tuple[str, ...]
    others: tuple[str, ...]
    uncounted: bool
    suspects: tuple[Connection, ...] = ()
    sources: tuple[Queue, ...] = ()
    held_up: tuple[Queue, ...] = ()
    behind: tuple[Queue, ...] = ()
    is_backpressure: bool = False
    dead_lettered_to: tuple[str, ...] | None = None

    @property
    def without_confirms(self) -> tuple[Channel, ...]:
        """The channels without confirms that may have published the rest."""
        return self.silent.channels

    @property
    def stored_in(self) -> tuple[str, ...]:
        """The queues that get all that it refuses; none if dead letters of other queues come to it as well."""
        return () if self.sources else self.dead_lettered_to or ()


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that refuses publishes when it is full, and is full."""
    without_publishers: list[str] = []
    full_queues = 0
    for queue in view.queues:
        recent = full_readings(view, queue)
        if not recent:
            continue
        full_queues += 1
        full = _full(view, queue, recent)
        if (full.refused or 0) > 0 or (full.refused is None and full.nacked):
            severity = Severity.WARNING if full.is_backpressure or full.stored_in else Severity.CRITICAL
        elif full.refused is None and full.without_confirms:
            severity = Severity.WARNING
        elif full.uncounted or min(level(seen.value) for seen in recent[-2:]) >= 1.0:
            severity = Severity.INFO
            full = replace(full, nacked=(), silent=SilentPublishers(), held_up=(), behind=())
        else:
            continue
        if not view.fresh("channels"):
            without_publishers.append(queue.name)
        yield _finding(view, severity, full)
    if full_queues:
        yield from without_links(view, NAME)
    if without_publishers:
        yield Inconclusive(rule=NAME, reason="channels_not_read", facts={"queues": sorted(without_publishers)})


def _full(view: View, queue: Queue, recent: Series[Queue]) -> FullQueue:
    native, balanced = publishers_to(view, queue), last(balance(view, queue), view.thresholds.interval)
    # The counters of a queue are those of its AMQP 0-9-1 clients only.
    uncounted = any(link.is_uncounted for link in view.links(queue)) or bool(native)
    if uncounted and len(balanced) > 1:
        recent, uncounted = balanced, False
    seconds = max(span(recent), 1.0)
    number = None if uncounted else refused(recent)
    if native and number is not None:
        nacked = refused_links(native, recent, number)
    elif number is None:
        nacked = tuple(each for each in nacked_publishers(view) if each.channel.vhost == queue.vhost)
    else:
        nacked = fitting(view, queue) if number else ()
    explained = number is not None and sum(each.rate for each in nacked) >= _EXPLAINED * number / seconds
    published = delta(recent, "publish")
    silent = SilentPublishers() if explained or not published else silent_publishers(view, queue, published / seconds)
    exchanges, stored = also_stored(view, queue)
    sources = dead_letters_from(view, queue)
    return FullQueue(
        queue=queue,
        recent=recent,
        history=view.history(queue),
        refused=number,
        nacked=nacked,
        silent=silent,
        exchanges=exchanges,
        others=stored,
        uncounted=uncounted or has_unreported_links(view, queue.vhost),
        suspects=suspects(view, queue.vhost) if not nacked and has_unreported_links(view, queue.vhost) else (),
        sources=sources,
        is_backpressure=explained and not silent.channels and not sources and delta(recent, "ack") > (number or 0),
        held_up=tuple(each for each in queues_held_up(view, nacked) if each.key != queue.key),
        behind=waiting_behind(view, queue, [each.channel for each in nacked if not is_native(each.connection)]),
        dead_lettered_to=_dead_lettered_to(view, queue),
    )


def _finding(view: View, severity: Severity, full: FullQueue) -> Finding:
    queue, seconds = full.queue, span(full.recent)
    acked = delta(full.recent, "ack")
    connections = [each.connection for each in full.nacked]
    silent = [view.connection(channel.connection_name) for channel in full.without_confirms]
    channels = [each.channel for each in full.nacked]
    if not full.silent.one_of:
        connections, channels = connections + silent, [*channels, *full.without_confirms]
    maybe = [*full.suspects, *(each for each in silent if each is not None and full.silent.one_of)]
    involved = involved_connections(connections, (channel.name for channel in channels))
    involved = replace(involved, queues=(queue_ref(queue),))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=_full_since(full),
        facts={
            "queue": queue_with_policy(view, queue),
            "ready": queue.messages_ready or 0,
            "ready_bytes": queue.message_bytes_ready or 0,
            "limit_messages": _limit(queue, "max-length"),
            "limit_bytes": _limit(queue, "max-length-bytes"),
            "limit_is_argument": any(f"x-{key}" in queue.arguments for key in _LIMITS),
            "raised_limits": _raised_limits(queue),
            "overflow": queue.setting("overflow"),
            "consumers": queue.consumers or 0,
            "dead_letters_held": held_dead_letters(queue),
            "dead_letter_sources": [each.name for each in full.sources],
            "dead_letters_stay": all(map(at_least_once, full.sources)),
            "dead_lettered_to": None if full.dead_lettered_to is None else list[Fact](full.dead_lettered_to),
            "published": delta(full.recent, "publish"),
            "acked": acked,
            "ack_rate": acked / max(seconds, 1.0),
            "refused": full.refused,
            "interval_seconds": seconds,
            "nacked_clients": sorted({each.client for each in full.nacked}),
            "held_up": [each.name for each in full.held_up],
            "behind": [each.name for each in full.behind],
            "is_backpressure": full.is_backpressure,
            "channels_without_confirms": [channel.name for channel in full.without_confirms],
            "transactions": any(channel.transactional for channel in full.without_confirms),
            "one_without_confirms": full.silent.one_of,
            "clients_without_confirms": _clients(view, full.without_confirms),
            "fan_out_exchanges": list(full.exchanges),
            "also_stored_by": list(full.others),
            "uncounted": full.uncounted,
            "suspects": suspect_facts(full.suspects),
        },
        evidence=tuple(_evidence(full)),
        involved=replace(involved, one_of=tuple(dict.fromkeys(each.name for each in maybe))),
        own_impact=Impact.SLOWDOWN if full.is_backpressure or full.stored_in else None,
        certainty=Certainty.CERTAIN if full.refused is not None else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _named_by(fact: str) -> Keys:
    """Return the keys of the queues whose names are in a fact of a finding; none where it is None."""

    def queues(_view: View, finding: Finding) -> Iterator[Hashable]:
        names = finding.facts[fact]
        yield from ((finding.subject.vhost, name) for name in (names if isinstance(names, list) else ()))

    return queues


HELD_UP = Relation(_named_by("held_up"), INVOLVED_QUEUES.of_other)
"""The cause is a full queue; the consequence is about a queue whose consumers it refuses."""


REFUSED_INTO = Relation(_named_by("dead_lettered_to"), INVOLVED_QUEUES.of_other)
"""The cause is a full queue; the consequence is about a queue that gets what it refuses."""


WAIT_BEHIND = Relation(_named_by("behind"), INVOLVED_QUEUES.of_other)
"""The cause is a full queue; the consequence is about a queue whose messages wait behind what it refuses."""


def _evidence(full: FullQueue) -> Iterator[Evidence]:
    yield Evidence(
        key="ready",
        value=full.queue.messages_ready,
        unit=Unit.MESSAGES,
        source=source(
            "/api/queues", "messages_ready", "message_bytes_ready", "arguments", "effective_policy_definition"
        ),
    )
    yield Evidence(
        key="published",
        value=delta(full.recent, "publish"),
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.publish"),
    )
    if full.refused is not None:
        yield Evidence(
            key="refused",
            value=full.refused,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.publish", "message_stats.ack", "messages"),
        )
    for each in full.nacked[:3]:
        yield Evidence(
            key="nacked",
            value=each.nacked,
            unit=Unit.MESSAGES,
            source=source(SESSIONS, "incoming_links.delivery_count", "incoming_links.target_address")
            if is_native(each.connection)
            else source("/api/channels", "message_stats.publish", "message_stats.confirm", "messages_unconfirmed"),
            facts={"publisher": {"client": each.client, "channel": each.channel.name}},
        )
    if full.without_confirms:
        yield Evidence(
            key="without_confirms",
            value=len(full.without_confirms),
            source=source("/api/channels", "confirm", "message_stats.publish"),
        )


def _full_since(full: FullQueue) -> str:
    """Return the first of the latest readings near the limit; the count restarts once a queue has drained by half."""
    first = full.recent[0]
    for seen in reversed(full.history):
        if (seen.value.messages or 0) * 2 < (full.queue.messages or 0):
            break
        first = seen
    return first.at.iso()


def _limit(queue: Queue, name: str) -> int | None:
    value = queue.setting(name)
    return value if isinstance(value, int) else None


def _clients(view: View, channels: tuple[Channel, ...]) -> list[Fact]:
    """Return the applications of some channels, each once."""
    names = {client_name(view.connection(each.connection_name), each.connection_name) for each in channels}
    return [*sorted(filter(None, names))]


def _dead_lettered_to(view: View, queue: Queue) -> tuple[str, ...] | None:
    """Return the queues that get what is refused; None if refused messages are not dead-lettered."""
    if queue.setting("overflow") != "reject-publish-dlx":
        return None
    return tuple(name for _, name in sorted(dead_letters_to(view, queue) or ()))


def _raised_limits(queue: Queue) -> dict[str, Fact]:
    """Return the definition of a policy with twice the limits."""
    limits: dict[str, Fact] = {key: value * 2 for key in _LIMITS if (value := _limit(queue, key)) is not None}
    return {**limits, "overflow": queue.setting("overflow")}
