"""The bytes that a client sends, with an end: a client that sends a byte a second, or never stops, is cut off."""

import io
import socket
import time
from typing import Any

IDLE_SECONDS = 75.0
"""A connection may be silent so long between two requests: longer than most scrapers wait."""
REQUEST_SECONDS = 10.0
"""From its first byte, a request must be whole within this."""
REQUEST_BYTES = 32 * 1024
"""Request line and headers together; a scraper's are below one thousand bytes."""


class RequestTooLarge(Exception):
    """The client sent more than a request may have."""


class RequestReader(io.RawIOBase):
    """A raw reader for one connection; `begin` starts the account of each request.

    Args:
        sock: the connection; its timeout is set before every read.

    Attributes:
        ended: the client has said that it sends no more, when more was looked for.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.ended = False
        self._until: float | None = None
        self._idle = REQUEST_SECONDS
        self._left = REQUEST_BYTES

    def begin(self, idle: float) -> None:
        """A new request: it may begin within `idle` seconds.

        What was read ahead of it, with the request before, is not counted again.
        """
        self._until, self._idle, self._left = None, idle, REQUEST_BYTES

    def allow(self, chunks: int) -> None:
        """The request has a body of so many bytes."""
        self._left += chunks

    def readable(self) -> bool:
        """It is a reader."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there.

        Raises:
            TimeoutError: the client was silent for too long, or its request took too long.
            TooMuch: the request is too large.
        """
        now = time.monotonic()
        wait = self._idle if self._until is None else self._until - now
        if wait <= 0:
            raise TimeoutError("the request took too long")
        if self._left <= 0:
            raise RequestTooLarge
        self._sock.settimeout(wait)
        count = self._sock.recv_into(memoryview(buffer)[: self._left])
        if self._until is None:
            self._until = time.monotonic() + REQUEST_SECONDS
        self._left -= count
        self.ended = count == 0
        return count
