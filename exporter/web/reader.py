"""Reads requests with byte and time limits, so that slow or endless clients are cut off."""

import io
import socket
import time
from typing import Any

IDLE_SECONDS = 75.0
"""Idle timeout of a connection between requests, in seconds; longer than most scrape intervals."""
REQUEST_SECONDS = 10.0
"""Seconds from the first byte of a request to its last."""
REQUEST_BYTES = 32 * 1024
"""Size limit of request line and headers; a scraper sends less than 1,000 bytes."""


class RequestTooLarge(Exception):
    """The request exceeds the size limit."""


class RequestReader(io.RawIOBase):
    """Raw reader of one connection; `begin` resets the limits for a request.

    Args:
        sock: the connection; its timeout is set before every read.

    Attributes:
        ended: whether the client has closed its side.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.ended = False
        self._until: float | None = None
        self._idle = REQUEST_SECONDS
        self._left = REQUEST_BYTES

    def begin(self, idle: float) -> None:
        """Start a new request, whose first byte must arrive within `idle` seconds.

        Bytes already read ahead with the previous request are not counted again.
        """
        self._until, self._idle, self._left = None, idle, REQUEST_BYTES

    def allow(self, chunks: int) -> None:
        """Allow a body of this many bytes."""
        self._left += chunks

    def readable(self) -> bool:
        """Return True. The base class calls this."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read available bytes.

        Raises:
            TimeoutError: the client was idle or its request took too long.
            RequestTooLarge: the size limit is exceeded.
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
