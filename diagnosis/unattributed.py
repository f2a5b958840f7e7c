"""AMQP 1.0 clients whose actions the broker does not attribute: candidates for a client, and the totals of all of them.

RabbitMQ 4.0 reports queue and tag of such a consumer, and address, user and virtual host of such a connection. Nothing
links the two: there is no session, no container id and no byte count. Later versions report sessions, which link them.
Each AMQP 1.0 connection of the virtual host is a candidate, except those that were opened after the consumer existed.
The Prometheus endpoints count what all AMQP 1.0 clients together published, received and accepted.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from itertools import pairwise

from ackscope.findings import Evidence, Fact, Involved, source
from ackscope.protocols import AMQP10, native_protocol
from ackscope.second_source import NativeTotals, QueueTypeTotals
from ackscope.snapshot import Connection
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.series import stretch
from diagnosis.view import View, is_own
from diagnosis.window import Series, Timestamped

TOTALS = "/metrics"
"""Where the totals are read."""

_LATE = 30.0
"""Seconds by which the clocks of the broker and of ackscope may differ, with the age of its statistics."""

_MOST = 50

_COUNTERS = ("received", "awaited", "unroutable", "to_confirm", "confirmed")


def suspects(view: View, vhost: str | None, since: float | None = None) -> tuple[Connection, ...]:
    """Return the AMQP 1.0 connections that may be a client of a virtual host, by name.

    Args:
        view: the view that is judged.
        vhost: the virtual host; None for all.
        since: wall clock at which the client was there already; a connection opened later is none.
    """
    found = [each for each in per_view(view, _native) if vhost is None or each.vhost == vhost]
    if since is None:
        return tuple(found)
    return tuple(each for each in found if each.connected_at is None or each.connected_at <= since + _LATE)


def own_probes_connected(view: View) -> bool:
    """Return whether one of our own probes uses AMQP 1.0. It rejects and loses messages on purpose."""
    return any(is_own(each) and native_protocol(each.protocol) == AMQP10 for each in view.every_connection)


def with_suspects(involved: Involved, found: tuple[Connection, ...]) -> Involved:
    """Return the identifiers with the client if one connection alone can be it, else with all that can be it."""
    if len(found) != 1:
        return replace(involved, one_of=tuple(each.name for each in found[:_MOST]))
    clients = (found[0].client_name,) if found[0].client_name else ()
    return replace(
        involved,
        connections=tuple(dict.fromkeys((*involved.connections, found[0].name))),
        clients=tuple(dict.fromkeys((*involved.clients, *clients))),
    )


def suspect_facts(found: tuple[Connection, ...]) -> list[Fact]:
    """Return what identifies the connections, for the macro `suspects_text`."""
    return [_facts(each) for each in found[:_MOST]]


def suspect_evidence(found: tuple[Connection, ...]) -> tuple[Evidence, ...]:
    """Return the first of them as evidence; the shared entry `suspect`."""
    return tuple(
        Evidence(
            key="suspect",
            value=len(found),
            source=source("/api/connections", "protocol", "vhost", "connected_at"),
            facts={"suspect_client": _facts(each)},
        )
        for each in found[:5]
    )


def names(found: Iterable[Connection]) -> list[str]:
    """Return the name of the client if it is known which one it is; else nothing."""
    known = [client_name(each) or each.name for each in found]
    return known if len(known) == 1 else []


def _facts(connection: Connection) -> dict[str, Fact]:
    peer = f"{connection.peer_host}:{connection.peer_port}" if connection.peer_host and connection.peer_port else ""
    return {
        "client": connection.client_name,
        "user": connection.user,
        "peer": peer,
        "connection": connection.name,
    }


def _native(view: View) -> tuple[Connection, ...]:
    found = (each for each in view.connections if native_protocol(each.protocol) == AMQP10)
    return tuple(sorted(found, key=lambda each: each.name))


def counted(view: View) -> Series[NativeTotals]:
    """Return what all AMQP 1.0 clients did at each reading of the endpoints, since a node restarted; () if not read."""
    return per_view(view, _counted)


def totals(view: View) -> Series[NativeTotals]:
    """Return the same since the last time at which one of these clients went, or may have gone unseen.

    What the totals gained in that time, present clients did.
    """
    return per_view(view, _totals)


def gained(series: Series[NativeTotals], number: Callable[[NativeTotals], int | None]) -> int | None:
    """Return the increase of a total over some readings; None if it is unknown or there are fewer than two."""
    if len(series) < 2:
        return None
    first, latest = number(series[0].value), number(series[-1].value)
    return None if first is None or latest is None else latest - first


def of_type(kind: str | None, name: str) -> Callable[[NativeTotals], int | None]:
    """Return what reads a total of the queues of one type; see `QueueTypeTotals`."""

    def number(value: NativeTotals) -> int | None:
        found = value.types.get(kind or "")
        return None if found is None else getattr(found, name)

    return number


def _totals(view: View) -> Series[NativeTotals]:
    seen = view.window.readings("connections")
    began = seen[0].at.mono - view.thresholds.interval if seen else float("inf")
    for older, newer in pairwise(seen):
        names = {each.name for each in newer.value}
        if any(native_protocol(each.protocol) == AMQP10 and each.name not in names for each in older.value):
            began = newer.at.mono
    overviews = view.window.readings("overview")
    if overviews and "connection_closed" in overviews[-1].value.churn:
        # Readings of connections are held for a short time only; nobody went where none was closed at all.
        closed = [
            newer.at.mono
            for older, newer in pairwise(overviews)
            if older.value.churn.get("connection_closed") != newer.value.churn.get("connection_closed")
        ]
        began = min(began, closed[-1] if closed else overviews[0].at.mono)
    return tuple(each for each in counted(view) if each.at.mono >= began)


def _counted(view: View) -> Series[NativeTotals]:
    readings = tuple(
        Timestamped(seen.at, seen.value.native)
        for seen in view.window.readings("prometheus")
        if seen.value.native is not None
    )
    if not readings or view.now.since(readings[-1].at) > view.thresholds.data_age:
        return ()
    return stretch(readings, lambda older, newer: not _restarted(older.value, newer.value))


def _restarted(older: NativeTotals, newer: NativeTotals) -> bool:
    pairs = [(getattr(older, name), getattr(newer, name)) for name in _COUNTERS]
    pairs += [(number, newer.dead_lettered.get(name)) for name, number in older.dead_lettered.items()]
    for kind, before in older.types.items():
        after = newer.types.get(kind, QueueTypeTotals())
        pairs += [(getattr(before, it.name), getattr(after, it.name)) for it in fields(QueueTypeTotals)]
    return any(was is not None and (now is None or now < was) for was, now in pairs)
