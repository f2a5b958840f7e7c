"""Answers from memory for the real HTTP clients: the bytes that a server would send, without server and network.

The clients read them as from a socket, through http.client, urllib3, requests and their own limits.
"""

import io
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

NOT_FOUND = b'{"error":"Object Not Found","reason":"Not Found"}'


def answer(body: bytes, status: str = "200 OK", headers: tuple[str, ...] = (), kind: str = "application/json") -> bytes:
    """Return a whole answer, with its headers."""
    head = (f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close")
    return "\r\n".join((*head, *headers, "", "")).encode("latin-1") + body


class _Bytes(io.RawIOBase):
    """What a socket would give."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(buffer)


class _MemorySocket:
    """A connection of a client. The path of its request decides the answer."""

    def __init__(self, answers: Mapping[str, bytes], device: int) -> None:
        self._answers, self._device, self._request = answers, device, b""

    def sendall(self, content: bytes) -> None:
        self._request += content

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        words = self._request.partition(b"\r\n")[0].split()
        self._request = b""
        path = unquote(urlsplit(words[1].decode("latin-1")).path)
        return io.BufferedReader(_Bytes(self._answers.get(path, answer(NOT_FOUND, "404 Not Found"))))

    def fileno(self) -> int:
        # One that can always be read, so that a connection which stays open is not used again.
        return self._device

    def settimeout(self, seconds: float | None) -> None:
        """Nothing here waits."""

    def setsockopt(self, *_: Any) -> None:
        """Nothing here is sent."""

    def shutdown(self, _: int) -> None:
        """Nothing here is open."""

    def close(self) -> None:
        """As above."""


class MemoryNetwork:
    """All connections of this process lead here while the block of `connected` runs.

    Attributes:
        answers: path without its query, decoded -> the bytes of its answer; may be replaced at any time.
    """

    def __init__(self) -> None:
        self.answers: Mapping[str, bytes] = {}

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Replace the function of urllib3 that opens connections."""
        device = os.open(os.devnull, os.O_RDONLY)

        def connect(*_: Any, **__: Any) -> Any:
            return _MemorySocket(self.answers, device)

        try:
            with patch("urllib3.util.connection.create_connection", connect):
                yield
        finally:
            os.close(device)


def loopback(url: str, content: bytes, seconds: float) -> bytes:
    """Send bytes to a server, say that there will be no more, and return its answer.

    Raises:
        TimeoutError: it did not end the connection in time.
    """
    parts = urlsplit(url)
    received = bytearray()
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=seconds) as client:
        try:
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            # It may have ended the connection already, with its answer.
            pass
        while True:
            try:
                piece = client.recv(65536)
            except ConnectionResetError:
                return bytes(received)
            if not piece:
                return bytes(received)
            received += piece
