"""Limits open connections, and chooses which one to close to make room."""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

MAX_CONNECTIONS = 128
"""Concurrent connections, one thread each. Prometheus holds one per target and server."""


@dataclass(slots=True)
class _Open:
    """One connection: the socket to close, and since when it waits for a full request; None if it does not wait."""

    sock: socket.socket
    idle_since: float | None


class OpenConnections:
    """Limits connections: at the limit, the one that has waited longest for a full request is closed.

    A client that opens many connections and sends little therefore does not block others. A connection is identified by
    the accepted socket, with or without TLS on top.

    Args:
        max_connections: limit of open connections.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections
        self._lock = threading.Lock()
        self._open: dict[socket.socket, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, accepted: socket.socket) -> bool:
        """Register a new connection. Returns False if there is no room."""
        with self._lock:
            if len(self._open) >= self._max_connections and not self._make_room():
                return False
            self._open[accepted] = _Open(accepted, time.monotonic())
            return True

    def leave(self, accepted: socket.socket) -> None:
        """Unregister a connection."""
        with self._lock:
            self._open.pop(accepted, None)

    def replace(self, accepted: socket.socket, by: socket.socket) -> None:
        """Record that a connection continues through another socket, as with TLS."""
        with self._lock:
            if accepted in self._open:
                self._open[accepted].sock = by

    def idle(self, accepted: socket.socket, *, idle: bool) -> None:
        """Mark a connection as waiting for a request, or as having a full one."""
        with self._lock:
            if accepted in self._open:
                self._open[accepted].idle_since = time.monotonic() if idle else None

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for it in self._open.values():
                _end(it.sock)
            self._open.clear()

    def _make_room(self) -> bool:
        idle = {key: it.idle_since for key, it in self._open.items() if it.idle_since is not None}
        if not idle:
            return False
        longest = min(idle, key=lambda key: idle[key])
        _end(self._open.pop(longest).sock)
        return True


def _end(sock: socket.socket) -> None:
    # Only shut down the socket: the reading thread sees the end and closes it. The shutdown of TLS is not used because
    # it is not thread-safe.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
