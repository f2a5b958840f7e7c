"""The connections that are open: how many there may be, and which one makes room for the next."""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass

MAX_CONNECTIONS = 128
"""Connections at once, each with a thread. Prometheus holds one a target and server; this is for many of them."""


@dataclass(slots=True)
class _Open:
    """One connection: the socket that ends it, and since when it waits for a whole request; None when it has one."""

    sock: socket.socket
    idle_since: float | None


class OpenConnections:
    """Counts connections; when there are too many, the one that has waited longest for a whole request is ended.

    So whoever opens many, and sends little or nothing, holds up nobody else.
    A connection is known by the socket that was accepted, whatever is spoken on top of it.

    Args:
        most: how many may be open.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections
        self._lock = threading.Lock()
        self._open: dict[socket.socket, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, accepted: socket.socket) -> bool:
        """A new connection; False where there is no room for it and none could be made."""
        with self._lock:
            if len(self._open) >= self._max_connections and not self._make_room():
                return False
            self._open[accepted] = _Open(accepted, time.monotonic())
            return True

    def leave(self, accepted: socket.socket) -> None:
        """It has ended."""
        with self._lock:
            self._open.pop(accepted, None)

    def replace(self, accepted: socket.socket, by: socket.socket) -> None:
        """It goes on through another socket: TLS's."""
        with self._lock:
            if accepted in self._open:
                self._open[accepted].sock = by

    def idle(self, accepted: socket.socket, *, idle: bool) -> None:
        """It waits for a request, or has got a whole one."""
        with self._lock:
            if accepted in self._open:
                self._open[accepted].idle_since = time.monotonic() if idle else None

    def close(self) -> None:
        """End them all."""
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
    # Not closed here: the thread that reads it sees its end, and closes it. Not TLS's own shutdown: it is not for
    # several threads.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
