"""A requests transport with a deadline for the whole answer.

The read timeout of requests restarts with every byte: a server that sends a byte per second would block a reader for
hours. Here every read, including the headers, gets only the time that remains.
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


class _DeadlineReader(io.RawIOBase):
    """Reads a socket up to a deadline, in seconds of the monotonic clock."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(remaining)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock, deadline))


class _Plain(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3
        # By now urllib3 has set `timeout` to the time that remains for reading.
        deadline = time.monotonic() + float(self.timeout or 0)
        self.response_class = functools.partial(_Response, deadline=deadline)  # type: ignore[assignment]
        return super().getresponse()


class _Tls(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3
        deadline = time.monotonic() + float(self.timeout or 0)
        self.response_class = functools.partial(_Response, deadline=deadline)  # type: ignore[assignment]
        return super().getresponse()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _Tls


class DeadlineAdapter(HTTPAdapter):
    """Adapter for a requests session that makes `timeout=` bound the whole answer."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Use connections with a deadline; see the base class."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
