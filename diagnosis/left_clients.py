"""Publishing clients whose last connection ended and that have not come back, kept while older readings are dropped.

Readings of connections go back half a minute, and who is missed is often asked later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Connection

MOST = 500
"""Maximum number of clients that are kept, those that left last."""

Client = tuple[str, str, str]
"""Name, user and virtual host of an application. These stay the same when it comes back, also from another host."""


@dataclass(frozen=True, slots=True)
class LeftClient:
    """A client that published and is no longer connected.

    Attributes:
        connection: its last connection, or one of those that ended together, as it was read last.
        connections: how many ended together.
        published: messages that they had published, by the channels that were listed with them.
        last, gone: the last reading with the client, and the first one without it.
    """

    connection: Connection
    connections: int
    published: int
    last: Instant
    gone: Instant


def left_clients(
    known: Iterable[LeftClient],
    before: tuple[Instant, Sequence[Connection]],
    after: tuple[Instant, Sequence[Connection]],
    channels: Iterable[Channel],
) -> tuple[LeftClient, ...]:
    """Return the clients that are away at the second of two lists of connections, in the order in which they left.

    Args:
        known: those that were away until the first list.
        before: time and connections of the first list.
        after: time and connections of the second list.
        channels: as they were read with the first list.
    """
    there = {each.name for each in after[1]}
    ended = [each for each in before[1] if each.name not in there]
    known = tuple(known)
    if not ended and not known:
        return ()
    connected = {client_of(each) for each in after[1]}
    published = _published(channels) if ended else {}
    groups: dict[Client, list[Connection]] = {}
    for each in ended:
        if client_of(each) not in connected:
            groups.setdefault(client_of(each), []).append(each)
    found = [each for each in known if client_of(each.connection) not in connected]
    for group in groups.values():
        sent = sum(published.get(each.name, 0) for each in group)
        if sent:
            found.append(LeftClient(group[0], len(group), sent, before[0], after[0]))
    return tuple(found[-MOST:])


def client_of(connection: Connection) -> Client:
    """Return what stays the same when a client comes back; its library stands for a name that it does not give."""
    name = connection.client_name or connection.client_product or ""
    return name, connection.user or "", connection.vhost or ""


def _published(channels: Iterable[Channel]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in channels:
        if each.stats.publish and each.connection_name:
            found[each.connection_name] = found.get(each.connection_name, 0) + each.stats.publish
    return found
