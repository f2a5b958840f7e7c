"""Connections: their age, and how findings refer to them."""

from collections.abc import Iterable

from ackscope.findings import Involved
from ackscope.protocols import STREAM, native_protocol
from ackscope.snapshot import Connection
from diagnosis.contract import View
from diagnosis.series import span

_MAX_INVOLVED = 50
"""Maximum identifiers of one kind in a finding, because a loop may involve thousands of connections."""


def age_seconds(view: View, connection: Connection | None) -> float:
    """Return the age of a connection in seconds: by the broker's clock or as observed, whichever is longer.

    0 if it is not listed.
    """
    if connection is None:
        return 0.0
    observed = span(view.connection_history(connection.name))
    if connection.connected_at is None:
        return observed
    return max(observed, view.now.wall - connection.connected_at)


def has_channels(connection: Connection) -> bool:
    """Return whether a connection may have channels: those of streams never do, and count as having 0."""
    return native_protocol(connection.protocol) != STREAM


def is_internal(connection: Connection) -> bool:
    """Return whether the broker opened a connection itself, for a link: over no network, and without a login."""
    return (connection.protocol or "").startswith("Direct")


def involved_connections(connections: Iterable[Connection | None], channels: Iterable[str] = ()) -> Involved:
    """Return connections, their client names, and channels as the identifiers that a finding involves."""
    known = [each for each in connections if each is not None]
    return Involved(
        connections=_first(each.name for each in known),
        clients=_first(each.client_name for each in known if each.client_name),
        channels=_first(channels),
    )


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names))[:_MAX_INVOLVED])
