"""Converts objects of a snapshot to facts of findings: plain values under the names that the shared macros expect."""

from collections.abc import Iterable

from ackscope.findings import Fact, QueueRef
from ackscope.snapshot import Connection, Queue
from diagnosis.view import ConsumerPath


def client_name(connection: Connection | None, default: str | None = None) -> str | None:
    """Return the name of an application: its client name, else `user@host`, else its connection's name.

    Returns `default` if the connection is not known. The library is no name: every application in its language has it.
    """
    if connection is None:
        return default
    origin = f"{connection.user}@{connection.peer_host}" if connection.user and connection.peer_host else None
    return connection.client_name or origin or connection.name


def peer(link: ConsumerPath) -> str:
    """Return the address of a consumer's process, `host:port`; "" if the broker does not report it."""
    host = link.consumer.peer_host or (link.connection.peer_host if link.connection else None)
    port = link.consumer.peer_port or (link.connection.peer_port if link.connection else None)
    return f"{host}:{port}" if host and port else host or ""


def consumer_facts(link: ConsumerPath) -> dict[str, Fact]:
    """Return what identifies a consumer, for the macro `consumer`.

    Returns:
        `{"tag", "client", "peer", "channel", "connection", "link"}`; `client` and `connection` are None if unknown,
        `link` is None for protocols other than AMQP 1.0.
    """
    return {
        "tag": link.consumer.tag,
        "client": client_name(link.connection, link.consumer.connection_name),
        "peer": peer(link),
        "channel": link.consumer.channel_name,
        "connection": link.connection.name if link.connection else link.consumer.connection_name,
        "link": link.consumer.link_name,
    }


def queue_facts(queue: Queue) -> dict[str, Fact]:
    """Return what identifies a queue, for the macros that take one.

    Returns:
        `{"vhost", "name", "type", "node", "policy"}`.
    """
    return {
        "vhost": queue.vhost,
        "name": queue.name,
        "type": queue.type,
        "node": queue.leader or queue.node,
        "policy": queue.policy,
    }


def queue_names(queues: Iterable[Queue]) -> list[Fact]:
    """Return the queues by their names and virtual hosts, sorted."""
    return list[Fact](sorted(f"{queue.name!r} in vhost {queue.vhost!r}" for queue in queues))


def queue_ref(queue: Queue) -> QueueRef:
    """Return the reference of a queue: its virtual host and name."""
    return QueueRef(queue.vhost, queue.name)
