"""Queues, connections and consumers as subjects, facts and identifiers of findings about consumers."""

from collections.abc import Iterable

from ackscope.findings import Fact, Involved, Subject
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import client_name, consumer_facts, queue_ref


def queue_subject(queue: Queue) -> Subject:
    """A queue as the subject of a finding."""
    return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node)


def connection_subject(connection: Connection) -> Subject:
    """A connection as the subject of a finding."""
    return Subject(kind="connection", name=connection.name, vhost=connection.vhost, node=connection.node)


def connection_peer(connection: Connection | None) -> str:
    """Return the address of an application, `host:port` or `host`; "" if unknown."""
    host, port = (connection.peer_host, connection.peer_port) if connection else (None, None)
    return f"{host}:{port}" if host and port else host or ""


def client_names(links: Iterable[ConsumerPath]) -> list[str]:
    """Return the application names of some consumers, sorted; unknown ones are left out."""
    names = {client_name(link.connection, link.consumer.connection_name) for link in links}
    return sorted(name for name in names if name)


def process_facts(link: ConsumerPath) -> dict[str, Fact]:
    """Return facts that identify a consumer, its process and its connection.

    Returns:
        `diagnosis.facts.consumer_facts`, and `{"host", "port", "connection_channels"}`: host "" and port "" if the
        broker does not say; `connection_channels` is how many channels its connection has.
    """
    facts = consumer_facts(link)
    host, _, port = str(facts["peer"]).rpartition(":")
    channels = link.connection.channels if link.connection else None
    return {**facts, "host": host, "port": port if host else "", "connection_channels": channels}


def involved_consumers(queues: Iterable[Queue], links: Iterable[ConsumerPath]) -> Involved:
    """Queues and their consumers by their identifiers."""
    found = tuple(links)
    connections = [link.connection.name if link.connection else link.consumer.connection_name for link in found]
    return Involved(
        queues=tuple(dict.fromkeys(map(queue_ref, queues))),
        channels=_distinct(link.consumer.channel_name for link in found),
        connections=_distinct(connections),
        clients=_distinct(link.connection.client_name for link in found if link.connection),
    )


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def admits_only_one(queue: Queue, links: Iterable[ConsumerPath]) -> str | None:
    """Return why more consumers would get no message: `single_active` or `exclusive`; None if unknown or if not so."""
    if queue.settings_known and queue.setting("single-active-consumer"):
        return "single_active"
    return "exclusive" if any(link.consumer.exclusive for link in links) else None


def may_hold_messages(link: ConsumerPath) -> bool:
    """Return whether the channel of a consumer holds messages, or is unknown.

    One that holds nothing gets nothing: a consumer with a higher priority takes everything, or there is no more.
    """
    return link.channel is None or link.channel.messages_unacked != 0


def preferred_priority(link: ConsumerPath, links: Iterable[ConsumerPath]) -> int | None:
    """Return the priority of a consumer that the broker prefers to all others of its queue; None if it does not."""
    others = [each.consumer.priority or 0 for each in links if each is not link]
    own = link.consumer.priority or 0
    return own if others and own > max(others) else None


def one_gets_all(links: tuple[ConsumerPath, ...]) -> bool:
    """Return whether one consumer holds messages, has a higher priority than all others, and these hold none."""
    holders = tuple(filter(may_hold_messages, links))
    return len(holders) == 1 and preferred_priority(holders[0], links) is not None


def waiting_on_channel(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> tuple[Queue, ...]:
    """Return the other queues with messages ready, by name, that the channels of these consumers consume from."""
    channels = {link.consumer.channel_name for link in links}
    places = {(each.vhost, each.queue) for each in view.every_consumer if each.channel_name in channels} - {queue.key}
    found = (view.queue(*place) for place in sorted(places))
    return tuple(each for each in found if each is not None and each.messages_ready)
