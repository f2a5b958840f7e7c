"""A TCP link to a server on loopback that can be slow, lossy, silent or cut."""

import enum
import random
import socket
import threading
import time
from contextlib import suppress


class LinkState(enum.Enum):
    """What the link does with bytes."""

    OPEN = "open"
    SLOW = "slow"
    LOSSY = "lossy"
    SILENT = "silent"
    CUT = "cut"


SLOW_SECONDS = 0.3
"""Delay of each piece of data while the link is slow."""

_LOST = 0.2
"""Share of the pieces of data that are lost while the link is lossy, and of those that are sent again."""

_RESENT_AFTER = 0.2
"""Seconds until lost data is sent again, doubled each time; Linux has the same least value."""

_LONGEST_DELAY = 3.0
_LOOK = 0.05


class NetworkLink:
    """Relays connections from a free port on loopback to a target.

    While it is lossy, some data arrives later, as TCP sends it again. While it is silent, connections stay open and
    carry nothing, as after a firewall dropped their state. While it is cut, connections end and new ones are refused.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._state, self._ended = LinkState.OPEN, False
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        port: int = self._listener.getsockname()[1]
        return port

    def turn(self, state: LinkState) -> None:
        """Change what it does from now on."""
        self._state = state
        if state is LinkState.CUT:
            with self._lock:
                for each in self._sockets:
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End all connections and refuse new ones."""
        self._ended = True
        self.turn(LinkState.CUT)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._ended:
                client, _ = self._listener.accept()
                if self._state is LinkState.CUT:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._target, timeout=5)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                with self._lock:
                    self._sockets |= {client, server}
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _delay(self) -> float:
        """Return the seconds by which a piece of data arrives later."""
        if self._state is LinkState.LOSSY:
            delay = 0.0
            while random.random() < _LOST and delay < _LONGEST_DELAY:  # noqa: S311  guards nothing
                delay += delay or _RESENT_AFTER
            return delay
        return SLOW_SECONDS if self._state is LinkState.SLOW else 0.0

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                time.sleep(self._delay())
                while self._state is LinkState.SILENT and not self._ended:
                    time.sleep(_LOOK)
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            with self._lock:
                self._sockets.discard(each)
