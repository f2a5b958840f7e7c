"""A requests transport whose whole answer has a deadline.

The read timeout of requests counts anew with every byte: a server that sends a byte a second would hold a reader
for hours. Here every read, of headers too, gets only the time that is left.
"""

import functools
import http.client
import io
import socket
import time
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse


class _Bounded(io.RawIOBase):
    """The bytes of a socket, until a moment of the monotonic clock."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float) -> None:
        self._raw = raw
        self._sock = sock
        self._until = until

    def readable(self) -> bool:
        """It is a reader."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there; wait no longer than what is left.

        Raises:
            TimeoutError: no time is left.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        """Give the socket's file back."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, until: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach(), sock, until))


class _Plain(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3
        # urllib3 has put the time left for reading into `timeout` by now.
        until = time.monotonic() + float(self.timeout or 0)
        self.response_class = functools.partial(_Response, until=until)  # type: ignore[assignment]
        return super().getresponse()


class _Tls(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3
        until = time.monotonic() + float(self.timeout or 0)
        self.response_class = functools.partial(_Response, until=until)  # type: ignore[assignment]
        return super().getresponse()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _Tls


class DeadlineAdapter(HTTPAdapter):
    """An adapter for a requests session; its `timeout=` then bounds the answer as a whole."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """As in the base class, with our connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
