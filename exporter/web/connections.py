"""Connections of the HTTP port: time limits for clients, and room for the next one.

uvicorn limits neither the time of a request nor that of reading an answer, and at its limit it refuses new clients.
"""

import contextlib
import socket
import sys
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ackscope.log import get_logger
from exporter.web.answer import BUSY, SAFE
from exporter.web.config import WebConfig

log = get_logger(__name__)

MAX_CONNECTIONS = 256
"""Concurrent connections, more than the handlers of all paths but `/metrics` can be working on."""
IDLE_SECONDS = 75.0
"""Idle timeout of a connection between requests, in seconds; longer than most scrape intervals."""
REQUEST_SECONDS = 10.0
"""Seconds from the first byte of a request to its last, and from a connection to its first byte."""
SEND_SECONDS = 60.0
"""Time limit in seconds to take a response. A slower scrape has timed out, and the response occupies memory."""
BUSY_SECONDS = 0.5
"""Seconds after a 429 until the next request of the connection is read."""
_LINGER_SECONDS = 0.5
_SLICE = 4 * 1024
_UNSENT_BYTES = 256 * 1024
_FULL_SECONDS = 60.0
_FULL_WAIT_SECONDS = 1.0
"""Seconds that a new connection waits for room before it is refused: most requests take milliseconds."""
_BACKLOG = 1024
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 21\r\n\r\ntoo many connections\n"
)


class HttpConnection(H11Protocol):
    """One connection. Subclassed for each server.

    Attributes:
        web: says which client certificates are admitted.
    """

    web: WebConfig

    cycle: Any  # None before the first request, which the library does not say
    transport: Any  # as above, before the connection

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._refused = self._ended = self._used = False
        self._answered = 0
        self._phase: object = self._look()[0]
        self._since = self._moved = time.monotonic()
        self._unsent = 0

    def connection_made(self, transport: Any) -> None:
        """Begin, unless the certificate of the client has none of the allowed names."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        if not self.web.admits(transport.get_extra_info("ssl_object")):
            log.debug("the client certificate has none of the names in client_allowed_sans")
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the client was refused."""
        self._used = True
        # h11 checks its limit when a request is incomplete: a large one that comes at once would pass.
        for start in range(0, len(data), _SLICE):
            if self._refused:
                return
            super().data_received(data[start : start + _SLICE])

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer what was asked before the client closed its side; with TLS, the library ends the connection."""
        self._ended = True
        return self._answers() and self.scheme == "http"

    def on_response_complete(self) -> None:
        """Go on with the next request: after a moment if the client was told that the exporter is busy.

        Otherwise clients that repeat their requests at once would take all the time of the loop.
        """
        self._answered += 1
        if self.scope["state"].get(BUSY):
            self.loop.call_later(BUSY_SECONDS, self._go_on)
        else:
            self._go_on()

    def _go_on(self) -> None:
        super().on_response_complete()
        if self._ended and not self._answers():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the exception says more
        """Refuse what is no request. The connection ends, because the start of the next request is unknown."""
        self._refused = True
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True  # it waits for the rest of its request
            self.cycle.message_event.set()
        status = HTTPStatus(getattr(sys.exception(), "error_status_hint", 400))
        text = f"{status.phrase.lower()}\n".encode()
        headers = {**SAFE, "Content-Type": "text/plain", "Content-Length": str(len(text)), "Connection": "close"}
        start = h11.Response(status_code=status, headers=list(headers.items()), reason=status.phrase)
        # What is no request may be the body of a HEAD request, whose response has none.
        is_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
        body = () if is_head else (h11.Data(data=text),)
        for event in (start, *body, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # Read what the client still sends for a moment: after a TCP reset it could not read the response.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def waits(self, now: float) -> tuple[float, float]:
        """Seconds for which the client has not done anything, and those by which it exceeds its time limit.

        The first is negative while the exporter works on a response.
        """
        phase, limit = self._look()
        unsent = self.transport.get_write_buffer_size()
        if phase != self._phase:
            self._phase, self._since, self._moved, self._unsent = phase, now, now, unsent
        if unsent < self._unsent:
            self._moved = now
        self._unsent = unsent
        if limit is None:
            return -1.0, -1.0
        return now - self._moved, now - self._since - limit

    def _look(self) -> tuple[object, float | None]:
        """What the connection is waiting for, and how long it may."""
        unsent = self.transport is not None and self.transport.get_write_buffer_size() > 0
        if unsent:
            return (self._answered, "taken"), SEND_SECONDS
        if self._answers():
            return (self._answered, "made"), None
        if self.cycle is not None and not self.cycle.response_complete:
            return (self._answered, "body"), REQUEST_SECONDS
        if self.conn.trailing_data[0] or not self._used:
            return (self._answered, "head"), REQUEST_SECONDS
        return (self._answered, "idle"), IDLE_SECONDS

    def _answers(self) -> bool:
        """Whether a complete request is being answered."""
        return bool(self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body)


class Room(socket.socket):
    """A listening socket with a limit of connections: at the limit, the one whose client is idle for longest is closed.

    Clients that open many connections, send little, or do not read, therefore do not block others.
    """

    def limited(self, most: int, connections: Iterable[HttpConnection]) -> None:
        """Set the limit.

        Args:
            most: number of connections, those within their TLS handshake included.
            connections: those that have got beyond the handshake.
        """
        self._most, self._connections = most, connections
        self._open: dict[socket.socket, float] = {}
        self._warned = float("-inf")
        self._full: float | None = None

    def listen(self, backlog: int = _BACKLOG, /) -> None:  # noqa: ARG002  the library limits with it what it accepts at a time
        """Listen, with a queue that holds a crowd."""
        super().listen(_BACKLOG)

    def count(self) -> int:
        """Number of open connections."""
        self._open = {sock: since for sock, since in self._open.items() if sock.fileno() >= 0}
        return len(self._open)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection.

        Raises:
            BlockingIOError: there is no room at the moment; the client waits in the queue of the kernel.
            ConnectionAbortedError: there was no room for a second; the client has got a 503.
        """
        now = time.monotonic()
        full = self.count() >= self._most
        idle = self._idle(now) if full else None
        self._full = (self._full or now) if full and idle is None else None
        if self._full is not None and now - self._full < _FULL_WAIT_SECONDS:
            raise BlockingIOError
        accepted, address = super().accept()
        if self._full is not None:
            self._warn()
            accepted.setblocking(False)
            with contextlib.suppress(OSError):
                accepted.send(_FULL)
            accepted.close()
            raise ConnectionAbortedError
        if idle is not None:
            self._end(idle)
        self._open[accepted] = now
        return accepted, address

    def sweep(self) -> None:
        """Close the connections whose clients have exceeded their time limits."""
        now = time.monotonic()
        for connection in list(self._connections):
            if connection.waits(now)[1] > 0:
                log.debug("client timed out", client=str(connection.client))
                connection.transport.abort()

    def end(self) -> None:
        """Close all connections."""
        for connection in list(self._connections):
            connection.transport.abort()
        for sock in self._open:
            _shut(sock)

    def _idle(self, now: float) -> socket.socket | None:
        """The connection whose client has done nothing for longest; None if all are being worked on."""
        # Those within their handshake are not known by number yet.
        waits = {sock.fileno(): now - since for sock, since in self._open.items()}
        for connection in self._connections:
            waits[_number(connection)] = connection.waits(now)[0]
        idle = max(self._open, key=lambda sock: waits[sock.fileno()])
        return idle if waits[idle.fileno()] >= 0 else None

    def _end(self, idle: socket.socket) -> None:
        del self._open[idle]
        for connection in self._connections:
            if _number(connection) == idle.fileno():
                connection.transport.abort()
                return
        _shut(idle)

    def _warn(self) -> None:
        # Rate-limited, because many connections must not fill the log.
        now = time.monotonic()
        if now - self._warned > _FULL_SECONDS:
            self._warned = now
            log.warning("connection limit reached; rejecting clients with 503", count=len(self._open))


def _number(connection: HttpConnection) -> int:
    """The number of its socket; -1 if it is closed."""
    number: int = connection.transport.get_extra_info("socket").fileno()
    return number


def _shut(sock: socket.socket) -> None:
    # Only the loop closes it: it sees the end at once.
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
