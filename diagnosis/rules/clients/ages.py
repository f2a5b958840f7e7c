"""How long a connection has been there."""

from ackscope.snapshot import Connection
from diagnosis.contract import View
from diagnosis.series import span


def age(view: View, connection: Connection) -> float:
    """Seconds, by the broker's own clock or as watched, whichever is more."""
    watched = span(view.connection_history(connection.name))
    if connection.connected_at is None:
        return watched
    return max(watched, view.now.wall - connection.connected_at)
