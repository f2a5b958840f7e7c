"""AMQP 1.0 sessions: which connections are asked for them next, and which consumer belongs to which session.

The broker has no list of all sessions: each connection is asked by itself, and answers from its own process. So a
reading asks some connections, in turn, and keeps what the others answered before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.clock import Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Connection, Consumer, Part
from exporter.broker.fields import Version

MOST_CONNECTIONS = 50
"""Connections that one reading asks; the budget of polling bounds how often."""

FIRST_VERSION: Version = (4, 1)
"""The first version that reports sessions."""

PROTOCOL = "AMQP 1-0"
"""The name of the protocol in `/api/connections`."""


class AmqpSessions:
    """The sessions of all AMQP 1.0 connections, each as it was read last.

    `listed` and `not_listed` are called by the thread that reads the connections, the others by the one that reads the
    sessions.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._listed_at: Instant | None = None
        self._failure: BrokerError | None = None
        self._asked: tuple[str, ...] = ()
        self._latest: dict[str, tuple[AmqpSession, ...]] = {}
        # Connection -> number of the round in which it was asked last.
        self._round, self._turns = 0, dict[str, int]()

    @property
    def any_native(self) -> bool:
        """Whether AMQP 1.0 clients were connected at the latest reading of the connections."""
        return bool(self._names)

    def listed(self, connections: Iterable[Connection], at: Instant) -> None:
        """Note the connections that exist."""
        self._names = tuple(each.name for each in connections if each.protocol == PROTOCOL)
        self._listed_at, self._failure = at, None

    def not_listed(self, error: BrokerError) -> None:
        """Note that the connections could not be read, so that it is not known which ones to ask."""
        self._failure = error

    def due(self, version: Version | None) -> tuple[str, ...]:
        """Return the connections to ask now: those that were not asked for longest; none before 4.1.

        Raises:
            BrokerError: the connections could not be read, for this reason.
        """
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        names = self._names if version is not None and version >= FIRST_VERSION else ()
        self._asked = tuple(sorted(names, key=lambda name: self._turns.get(name, -1))[:MOST_CONNECTIONS])
        self._round += 1
        self._turns = {name: self._turns[name] for name in names if name in self._turns}
        self._turns.update(dict.fromkeys(self._asked, self._round))
        return self._asked

    def known_at(self, now: Instant) -> Instant:
        """Return the time of what is known: that of the list of connections if none of them was asked."""
        return now if self._asked or self._listed_at is None else self._listed_at

    def merged(self, read: Iterable[AmqpSession], at: Instant) -> tuple[AmqpSession, ...]:
        """Return the sessions that were just read, with those of connections that were not asked and still exist."""
        names, asked = self._names, set(self._asked)
        remaining = {name: self._latest[name] for name in names if name in self._latest and name not in asked}
        fresh: dict[str, tuple[AmqpSession, ...]] = {}
        for session in read:
            fresh[session.connection_name] = (
                *fresh.get(session.connection_name, ()),
                replace(session, read_at=at),
            )
        self._latest = {**remaining, **fresh}
        return tuple(session for name in sorted(self._latest) for session in self._latest[name])


def with_sessions(parts: Mapping[str, Part[Any]]) -> dict[str, Part[Any]]:
    """Return the parts, with what sessions tell about consumers of AMQP 1.0 added to these consumers.

    `/api/consumers` gives of such a consumer only its queue and its tag, which is the handle of its link. Consumers of
    one queue with the same tag are told apart by whether they are active: the active one is the one that was sent most.
    """
    consumers, sessions, connections = (parts[name] for name in ("consumers", "sessions", "connections"))
    if not consumers.value or not sessions.value or not connections.value:
        return dict(parts)
    known = {each.name: each for each in connections.value}
    links: dict[tuple[str | None, str | None, str], list[tuple[AmqpSession, AmqpLink]]] = {}
    for session in sessions.value:
        connection = known.get(session.connection_name)
        if connection is None:
            continue
        for link in session.consuming:
            links.setdefault((connection.vhost, link.queue, str(link.handle)), []).append((session, link))
    for candidates in links.values():
        candidates.sort(key=lambda it: (it[1].delivery_count or 0, it[0].key))
    found: dict[int, Consumer] = {}
    nameless = (item for item in enumerate(consumers.value) if item[1].channel_name is None)
    for index, consumer in sorted(nameless, key=lambda item: item[1].active is False):
        candidates = links.get((consumer.vhost, consumer.queue, consumer.tag), [])
        if candidates:
            session, link = candidates.pop()
            found[index] = _joined(consumer, known[session.connection_name], session, link)
    if not found:
        return dict(parts)
    value = tuple(found.get(index, consumer) for index, consumer in enumerate(consumers.value))
    return {**parts, "consumers": replace(consumers, value=value)}


def _joined(consumer: Consumer, connection: Connection, session: AmqpSession, link: AmqpLink) -> Consumer:
    alone = len([each for each in session.consuming if not each.settled_by_sender]) == 1
    return replace(
        consumer,
        connection_name=connection.name,
        user=connection.user,
        node=connection.node,
        peer_host=connection.peer_host,
        peer_port=connection.peer_port,
        # The broker says 0, which would mean no limit; credit is what limits it.
        prefetch_count=None,
        session_number=session.number,
        link_name=link.name,
        credit=link.credit,
        unsettled=session.unsettled if alone and not link.settled_by_sender else None,
    )
