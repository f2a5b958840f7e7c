"""What clients publish over AMQP 1.0: where to, how much, and whether they wait for an outcome.

The broker counts these messages for no queue, exchange or channel. From 4.1 on each publishing link tells its target,
and how many messages came on it since it was attached. Source: https://www.rabbitmq.com/docs/amqp#address-v2
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.counters import MessageStats
from ackscope.findings import Fact, Inconclusive, source
from ackscope.protocols import AMQP10, native_protocol
from ackscope.snapshot import Channel, Connection
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.routes import Place, targets
from diagnosis.rules.publishers._shared.publishers import ActivePublisher
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series, Timestamped

SESSIONS = "/api/connections/{name}/sessions"

SETTLED_WHEN_SENT = source(SESSIONS, "incoming_links.snd_settle_mode", "incoming_links.delivery_count")
"""The fields that tell that a publisher waits for no outcome."""

_FIRST = (4, 1)
"""The first version that reports sessions."""

_Key = tuple[str, int, int, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePublisher:
    """A publishing link of an AMQP 1.0 session.

    Attributes:
        exchange: where its messages go, "" for the default exchange; None if each message says so itself, or unknown.
        routing_key: of all its messages.
        history: its readings as those of a channel; `publish` is the number of messages since it was attached.
        complete: whether its first reading is later than that of another session, so that it began with 0 messages.
    """

    connection: Connection
    link: AmqpLink
    exchange: str | None
    routing_key: str
    history: Series[Channel]
    complete: bool

    @property
    def client(self) -> str:
        """The application by its container id, else by its connection."""
        return client_name(self.connection) or self.connection.name

    def reached(self, view: View) -> frozenset[Place] | None:
        """Return the queues that its messages reach; None if unknown."""
        if self.exchange is None:
            return None
        return targets(view, self.connection.vhost or "/", self.exchange, self.routing_key)

    def as_active(self) -> ActivePublisher:
        """Return it as a publisher with the counters of a channel."""
        return ActivePublisher(
            channel=self.history[-1].value,
            connection=self.connection,
            history=self.history,
            published=delta(self.history, "publish"),
        )


def native_publishers(view: View) -> tuple[NativePublisher, ...]:
    """Return the publishing links of applications, in a fixed order; none where the broker does not report them."""
    return per_view(view, _native_publishers)


def where_to(address: str | None) -> tuple[str, str] | None:
    """Return the exchange and routing key of a target address of version 2; None for any other."""
    match (address or "").split("/"):
        case ["", "queues", queue]:
            return "", unquote(queue)
        case ["", "exchanges", exchange]:
            return unquote(exchange), ""
        case ["", "exchanges", exchange, key]:
            return unquote(exchange), unquote(key)
    return None


def stopped_by_alarm(view: View) -> frozenset[str]:
    """Return the connections of AMQP 1.0 publishers from which the broker takes nothing, while an alarm is in force.

    Their state stays "running"; the broker closes the window of their sessions instead.
    """
    check = view.alarm_check
    if not view.alarms and (check is None or check.ok is not False):
        return frozenset()
    return frozenset(each.connection_name for each in view.sessions if each.publishing and each.incoming_window == 0)


def has_unreported_links(view: View, vhost: str) -> bool:
    """Return whether AMQP 1.0 clients are connected to a virtual host, and the broker does not report their links."""
    return not _reports_links(view) and any(each.vhost == vhost for each in _native(view))


def without_links(view: View, rule: str) -> Iterator[Inconclusive]:
    """Yield which AMQP 1.0 clients a rule cannot judge, because the broker does not report sessions and links."""
    too_old = view.version is not None and view.version < _FIRST
    if not _reports_links(view):
        facts: dict[str, Fact] = {"too_old": too_old, "error": view.error("sessions")}
        yield from _listed(rule, "links_not_reported", _native(view), facts)


def without_sessions(view: View, rule: str) -> Iterator[Inconclusive]:
    """Yield which AMQP 1.0 clients a rule about refusals cannot judge: they are busy, and have no session."""
    yield from without_links(view, rule)
    reported = {session.connection_name for seen in view.window.readings("sessions") for session in seen.value}
    if reported or view.fresh("sessions"):
        found = (each for each in _native(view) if each.name not in reported and _works(view, each))
        yield from _listed(rule, "sessions_end_at_once", found, {})


def _reports_links(view: View) -> bool:
    return view.fresh("sessions") and not (view.version is not None and view.version < _FIRST)


def _listed(rule: str, reason: str, found: Iterable[Connection], facts: dict[str, Fact]) -> Iterator[Inconclusive]:
    # 4.0 does not report the container id.
    names = sorted({each.client_name or f"user {each.user or 'unknown'}: {each.name}" for each in found})
    if names:
        yield Inconclusive(rule=rule, reason=reason, facts={"clients": list[Fact](names), **facts})


def is_native(connection: Connection | None) -> bool:
    """Return whether a client uses AMQP 1.0."""
    return connection is not None and native_protocol(connection.protocol) == AMQP10


def links_gone_at(view: View) -> float | None:
    """Return when a publishing link was last seen to be gone, on the monotonic clock; None if none went."""
    return per_view(view, _gone_at)


def _native(view: View) -> Iterator[Connection]:
    return (each for each in view.connections if is_native(each))


def _works(view: View, connection: Connection) -> bool:
    """Return whether a client sent more than heartbeats in the readings of connections, at least two packets in 5 s."""
    history = view.connection_history(connection.name)
    packets = (history[-1].value.recv_cnt or 0) - (history[0].value.recv_cnt or 0) if history else 0
    return span(history) >= view.thresholds.interval and packets >= span(history) * 2 / 5


def _native_publishers(view: View) -> tuple[NativePublisher, ...]:
    readings = view.window.readings("sessions")
    first = {_key(session, link) for seen in readings[:1] for session in seen.value for link in session.publishing}
    found = []
    for session in view.sessions:
        connection = view.connection(session.connection_name)
        if connection is None:
            continue
        for link in session.publishing:
            history = _counted(view, connection, session, link)
            goes = where_to(link.address)
            found.append(
                NativePublisher(
                    connection=connection,
                    link=link,
                    exchange=None if goes is None else goes[0],
                    routing_key="" if goes is None else goes[1],
                    history=history,
                    complete=bool(readings) and _key(session, link) not in first,
                )
            )
    return tuple(sorted(found, key=lambda each: (each.connection.name, each.history[-1].value.name)))


def _counted(view: View, connection: Connection, session: AmqpSession, link: AmqpLink) -> Series[Channel]:
    same = partial(_same_link, _key(session, link))
    readings = stretch(view.session_history(session), lambda older, _: same(older.value) is not None)
    found = []
    for seen in readings:
        own = same(seen.value)
        count = own.delivery_count if own else None
        channel = Channel(
            name=f"{connection.name} ({session.number}:{link.handle})",
            connection_name=connection.name,
            vhost=connection.vhost,
            user=connection.user,
            confirm=None if link.settled_by_sender is None else not link.settled_by_sender,
            transactional=False,
            stats=MessageStats(publish=count),
        )
        found.append(Timestamped(seen.at, channel))
    return stretch(tuple(found), lambda older, newer: delta((older, newer), "publish") >= 0)


def _key(session: AmqpSession, link: AmqpLink) -> _Key:
    return (*session.key, link.handle, link.name)


def _same_link(key: _Key, session: AmqpSession) -> AmqpLink | None:
    return next((each for each in session.publishing if _key(session, each) == key), None)


def _gone_at(view: View) -> float | None:
    before: set[_Key] = set()
    gone = None
    for seen in view.window.readings("sessions"):
        now = {_key(session, link) for session in seen.value for link in session.publishing}
        gone = seen.at.mono if before - now else gone
        before = now
    return gone


def clients_of(found: Iterable[NativePublisher]) -> list[str]:
    """Return their applications, each once."""
    return sorted({each.client for each in found})
