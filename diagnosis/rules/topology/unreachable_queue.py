"""unreachable-queue: a consumer waits at a queue that the broker named, or of several alike, and nothing leads there.

Only its client knows such a name. So messages come by a binding, or as answers to what the client publishes. Without
either, none can come. A client library that restores a connection declares a new queue of another name; if it restores
the bindings of the old name, the consumer is connected, consumes and gets nothing, while nothing is unroutable.

That the client had bound a queue before, or has bound others now, shows that it expects messages. Without that it may
be about to send its first request, or have published its name in another way: then nothing is said.

Queues whose names differ in a number, and that instances of one application consume from, are meant alike. If all but
one are bound to the same exchange and get messages, the one that is not bound and never got any was forgotten. If
several are not bound, that may be on purpose.
Source: https://www.rabbitmq.com/docs/queues#server-named-queues
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, ExchangeRef, Finding, Severity, source
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import client_name, consumer_facts, queue_facts
from diagnosis.memo import per_view
from diagnosis.queue_families import name_pattern
from diagnosis.routes import bound_exchanges, dead_letter_targets
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in
from diagnosis.rules.queues._shared.queue import NAMED_BY_BROKER, involved_queue, queue_subject
from diagnosis.rules.topology._shared.cut_off import BINDS_WITHIN
from diagnosis.series import count

NAME = "unreachable-queue"

_AROUND = 45.0
"""Seconds between the end of a queue and the first reading of the one that replaces it: bindings are read seldom."""

_LEAST_ALIKE = 2
"""Queues of the same kind, beside one, that show what is meant for all of them."""

Client = tuple[str, str | None, str | None]
"""Application name, user and virtual host of a client; these stay the same when it connects again."""


@dataclass(frozen=True, slots=True)
class _KnownBindings:
    """What each client had bound queues to that the broker named.

    Attributes:
        now: client -> exchanges, by other queues that it consumes from now.
        before: client -> exchanges, by queues that are gone. Consumers are known for half a minute only.
        ended: queue that is gone -> its exchanges, and the first reading without its bindings.
    """

    now: dict[Client, set[str]]
    before: dict[Client, set[str]]
    ended: dict[tuple[str, str], tuple[set[str], Instant]]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every consumed queue that the broker named."""
    if view.bindings is None:
        return
    for queue in view.queues:
        if queue.name.startswith(NAMED_BY_BROKER) and _is_unused(queue) and not bound_exchanges(view, queue):
            links = view.links(queue)
            if len(links) == 1 and links[0].connection is not None:
                yield from _judged(view, queue, links[0], links[0].connection)
    for queue, link, alike in per_view(view, _left_out):
        if link.connection is not None:
            yield from _judged(view, queue, link, link.connection, alike)


def _is_unused(queue: Queue) -> bool:
    """Return whether a queue has a consumer and never got a message."""
    return bool(queue.consumers) and not queue.messages and not count(queue.stats, "publish", "deliver_get")


def _left_out(view: View) -> tuple[tuple[Queue, ConsumerPath, tuple[Queue, ...]], ...]:
    """Return queues without a binding, their consumers, and the queues alike, which all are bound to an exchange."""
    families: dict[tuple[str, str], list[Queue]] = {}
    for queue in view.queues:
        if "*" in name_pattern(queue.name) and not queue.name.startswith(NAMED_BY_BROKER):
            families.setdefault((queue.vhost, name_pattern(queue.name)), []).append(queue)
    found = []
    for alike in families.values():
        without = [queue for queue in alike if not bound_exchanges(view, queue)] if len(alike) > _LEAST_ALIKE else []
        if len(without) != 1 or not _is_unused(without[0]) or without[0].key in dead_letter_targets(view):
            continue
        others = tuple(queue for queue in alike if queue is not without[0])
        applications = {_application(link) for queue in alike for link in view.links(queue)}
        shared = set.intersection(*(set(bound_exchanges(view, queue)) for queue in others))
        served = all(queue.consumers and count(queue.stats, "publish") for queue in others)
        links = view.links(without[0])
        if shared and served and len(links) == 1 and len(applications) == 1 and None not in applications:
            found.append((without[0], links[0], others))
    return tuple(found)


def _application(link: ConsumerPath) -> str | None:
    """Return the name of the application of a consumer, without the number of its instance; None if unknown."""
    name = link.connection.client_name if link.connection is not None else None
    return name_pattern(name) if name else None


def _judged(
    view: View, queue: Queue, link: ConsumerPath, connection: Connection, alike: tuple[Queue, ...] = ()
) -> Iterator[Finding]:
    opened, bindings_age = connection.connected_at, view.age("bindings")
    client = _client(connection)
    if opened is None or bindings_age is None or client is None or _publishes(view, client):
        return
    waits = min(view.now.wall - opened, _present_seconds(view, queue))
    # Bindings are read every 30 s: those of before show nothing.
    if waits < view.limits(queue).early or bindings_age > waits - BINDS_WITHIN:
        return
    known = per_view(view, _known_bindings)
    if alike:
        before, now = set[str](), set.intersection(*(set(bound_exchanges(view, each)) for each in alike))
    else:
        before = known.before.get(client) or _bound_until(known, view.listed_since(queue))
        now = known.now.get(client, set())
    if not before and not now:
        # A client that is about to send its first request waits for answers in the same way.
        return
    goes_on = sorted(name for name in before | now if _is_published_to(view, queue.vhost, name))
    late = view.thresholds.publishers.unroutable_after
    urgent = bool(goes_on) and waits >= late
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if urgent else Severity.INFO,
        subject=queue_subject(queue),
        since=None,
        facts={
            "queue": queue_facts(queue),
            "client": client_name(connection, connection.name),
            "consumer": consumer_facts(link),
            "waits_seconds": waits,
            "was_bound": sorted(before),
            "others_bound": sorted(now),
            "alike": sorted(each.name for each in alike),
            "exchanges": goes_on,
            "warning_after_seconds": late,
        },
        certainty=Certainty.LIKELY if urgent or not goes_on else Certainty.EARLY,
        seen_seconds=waits,
        evidence=(
            Evidence(key="bindings", value=0, source=source("/api/bindings")),
            Evidence(key="published", value=0, source=source("/api/queues", "message_stats.publish")),
            Evidence(key="sent", value=0, source=source("/api/channels", "message_stats.publish")),
        ),
        involved=replace(
            involved_queue(queue, (link,)),
            exchanges=tuple(ExchangeRef(queue.vhost, name) for name in goes_on),
        ),
    )


def _client(connection: Connection | None) -> Client | None:
    """Return who a client is; None if it has no name of its own: a library may be that of many applications."""
    if connection is None or not connection.client_name:
        return None
    return connection.client_name, connection.user, connection.vhost


def _publishes(view: View, client: Client) -> bool:
    """Return whether a client ever published on a channel that is open: what it waits for may be answers."""
    return any(
        channel.stats.publish and _client(view.connection(channel.connection_name)) == client
        for channel in view.channels
    )


def _present_seconds(view: View, queue: Queue) -> float:
    """Return for how long a queue is known not to be new; infinite if it is in the first reading of all queues."""
    since, readings = view.listed_since(queue), view.window.readings("queues")
    if since is None or not readings:
        return 0.0
    return float("inf") if since == readings[0].at else view.now.since(since)


def _is_published_to(view: View, vhost: str, exchange: str) -> bool:
    history = exchange_histories(view).get((vhost, exchange), ())
    if len(history) == 1:
        return bool(history[0].value.stats.publish_in)
    return bool(history) and messages_in(history) > 0


def _bound_until(known: _KnownBindings, moment: Instant | None) -> set[str]:
    """Return the exchanges of the only queue that ended around a moment, which the new one then replaces."""
    if moment is None:
        return set()
    ended = [exchanges for exchanges, at in known.ended.values() if abs(at.since(moment)) <= _AROUND]
    return ended[0] if len(ended) == 1 else set()


def _known_bindings(view: View) -> _KnownBindings:
    connections = seen_connections(view)
    clients = {
        (each.vhost, each.queue): client
        for seen in view.window.readings("consumers")
        for each in seen.value
        if each.queue.startswith(NAMED_BY_BROKER)
        and (client := _client(connections.get(each.connection_name or ""))) is not None
    }
    found = _KnownBindings({}, {}, {})
    readings = view.window.readings("bindings")
    for place, listed in enumerate(readings):
        for binding in listed.value.listed or ():
            key = (binding.vhost, binding.destination)
            if binding.destination_type != "queue" or not binding.destination.startswith(NAMED_BY_BROKER):
                continue
            there = view.queue(*key) is not None
            if key in clients:
                (found.now if there else found.before).setdefault(clients[key], set()).add(binding.source)
            if not there and place + 1 < len(readings):
                exchanges, _ = found.ended.get(key, (set(), None))
                found.ended[key] = ({*exchanges, binding.source}, readings[place + 1].at)
    return found
