"""A socket of a probe on the event loop, plain or TLS, that knows when bytes left and when they arrived."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

from probes.kernel_timestamps import receive, request_times
from probes.parameters import tls
from probes.settings import AmqpServer

_MOST = 65_536


class TimedSocket:
    """An open connection; made by `TimedSocket.open`.

    Bytes are sent at once, not in the next iteration of the loop. Receive times are those of the kernel, with TLS too.
    """

    def __init__(
        self, sock: socket.socket, secure: ssl.SSLObject | None, pipes: tuple[ssl.MemoryBIO, ssl.MemoryBIO]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock, self._secure = sock, secure
        self._incoming, self._outgoing = pipes
        self._rest = b""
        self._received: Callable[[bytes, float], None] = lambda _, __: None
        self._ended: Callable[[OSError | None], None] = lambda _: None
        self._open = True

    @classmethod
    async def open(cls, server: AmqpServer) -> "TimedSocket":
        """Connect, with TLS if the address asks for it.

        Raises:
            OSError: no connection, or the certificate is not trusted.
            ConfigError: the CA file cannot be read.
        """
        loop, address = asyncio.get_running_loop(), server.address
        sock = await connect(await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        pipes = (ssl.MemoryBIO(), ssl.MemoryBIO())
        try:
            request_times(sock)
            secure = None
            if address.tls:
                # In a thread, because loading the system's CA certificates takes tens of milliseconds.
                trust = await asyncio.to_thread(tls, server)
                secure = trust.wrap_bio(*pipes, server_hostname=server.tls_name or address.host)
                await _shake_hands(sock, secure, pipes)
        except BaseException:
            sock.close()
            raise
        return cls(sock, secure, pipes)

    def start(self, received: Callable[[bytes, float], None], ended: Callable[[OSError | None], None]) -> None:
        """Start to read.

        Args:
            received: called with bytes and the time when they reached this machine, in monotonic seconds.
            ended: called once when the peer has closed the connection, or with the error that broke it.
        """
        self._received, self._ended = received, ended
        self._loop.add_reader(self._sock, self._readable)

    def send(self, data: bytes) -> float:
        """Hand bytes to the kernel now. What it does not take follows as soon as it does.

        Returns:
            Time at which they were handed over, in monotonic seconds.
        """
        if self._secure is not None:
            self._secure.write(data)
            data = self._outgoing.read()
        at = time.monotonic()
        if not self._open:
            return at
        if self._rest:
            self._rest += data
            return at
        self._rest = data
        self._writable()
        if self._rest:
            self._loop.add_writer(self._sock, self._writable)
        return at

    def close(self) -> None:
        """Close the socket. Can be called twice."""
        if self._open:
            self._open = False
            if self._secure is not None and not self._rest:
                # Say goodbye, but wait for none: it asks to read the one of the peer.
                with contextlib.suppress(OSError):
                    self._say_goodbye(self._secure)
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()

    def _say_goodbye(self, secure: ssl.SSLObject) -> None:
        with contextlib.suppress(ssl.SSLError):
            secure.unwrap()
        self._sock.send(self._outgoing.read())

    def _writable(self) -> None:
        try:
            self._rest = self._rest[self._sock.send(self._rest) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if not self._rest:
            self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        try:
            data, at = receive(self._sock, _MOST)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(None)
            return
        if self._secure is not None:
            self._incoming.write(data)
            try:
                data = _decrypted(self._secure)
            except OSError as error:
                self._end(error)
                return
        if data:
            self._received(data, at)

    def _end(self, error: OSError | None) -> None:
        if self._open:
            self.close()
            self._ended(error)


def _decrypted(secure: ssl.SSLObject) -> bytes:
    parts = []
    with contextlib.suppress(ssl.SSLWantReadError):
        while part := secure.read(_MOST):
            parts.append(part)
    return b"".join(parts)


async def _shake_hands(sock: socket.socket, secure: ssl.SSLObject, pipes: tuple[ssl.MemoryBIO, ssl.MemoryBIO]) -> None:
    """Run the TLS handshake.

    Raises:
        OSError: no TLS there, or the certificate is not trusted.
    """
    loop = asyncio.get_running_loop()
    incoming, outgoing = pipes
    while True:
        try:
            secure.do_handshake()
        except ssl.SSLWantReadError:
            await loop.sock_sendall(sock, outgoing.read())
            data = await loop.sock_recv(sock, _MOST)
            if not data:
                raise ConnectionResetError("the peer closed the connection in the TLS handshake") from None
            incoming.write(data)
        else:
            await loop.sock_sendall(sock, outgoing.read())
            return


async def connect(found: Sequence[tuple[Any, ...]]) -> socket.socket:
    """Connect to the first address that accepts.

    Raises:
        OSError: none accepts; the error is that of the last address.
    """
    loop = asyncio.get_running_loop()
    last: OSError = OSError("the name resolves to no address")
    for family, kind, protocol, _, address in found:
        candidate = socket.socket(family, kind, protocol)
        try:
            candidate.setblocking(False)
            await loop.sock_connect(candidate, address)
        except OSError as error:
            candidate.close()
            last = error
        except BaseException:
            candidate.close()
            raise
        else:
            candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return candidate
    raise last
