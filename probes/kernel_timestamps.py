"""A pika connection with exact times: it sends immediately, and takes receive times from the kernel.

pika delays writes to the next iteration of the loop, and calls back only after it has decoded all earlier frames. Under
load each of these adds tens to thousands of microseconds that the broker did not cause.
"""

import contextlib
import socket
import struct
import time
from typing import Any

from pika.adapters.asyncio_connection import AsyncioConnection

_SO_TIMESTAMPNS = 35
"""socket(7) on Linux; Python has no name for it."""

_TIMESPEC = struct.Struct("@ll")
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size)

_AT_ONCE = 100e-6
"""Readings of two clocks that are further apart were interrupted, and their difference means nothing. Seconds."""

_TRIES = 3

_OLDEST = 1.0
"""Seconds. A packet that seems older was not: the wall clock was set since it arrived, or differs from the kernel's."""


def request_times(sock: socket.socket) -> None:
    """Let the kernel note when each packet arrives; see `receive`."""
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive(sock: socket.socket, most: int) -> tuple[bytes, float]:
    """Read at most so many bytes. Returns them, and when they reached this machine, in monotonic seconds.

    Raises:
        OSError: nothing to read, or the connection failed.
    """
    data, ancillary, _, _ = sock.recvmsg(most, _ROOM)
    at = time.monotonic()
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            offset = _wall_minus_monotonic()
            if offset is not None and 0.0 <= at - (arrived := seconds + nanoseconds / 1e9 - offset) <= _OLDEST:
                at = arrived
    return data, at


def _wall_minus_monotonic() -> float | None:
    """Difference of the two clocks in seconds; None if each try was interrupted.

    An interruption between two readings would move a receive time, even to before the send time.
    """
    for _ in range(_TRIES):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < _AT_ONCE:
            return wall - (before + after) / 2
    return None


class TimestampedConnection(AsyncioConnection):  # type: ignore[misc]  # pika ships no types
    """A connection with receive timestamps.

    Attributes:
        read_at: when the bytes that are being processed reached this machine, in monotonic seconds; without a kernel
            timestamp (TLS), when they were read.
    """

    read_at = 0.0
    _kernel = False

    def use_kernel_times(self) -> None:
        """Enable kernel timestamps of received packets. Call this once, when the connection is open."""
        transport = self._transport
        sock = getattr(transport, "_sock", None)
        if type(sock) is not socket.socket:
            return
        request_times(sock)
        self._kernel = True
        transport._sigint_safe_recv = self._receive  # noqa: SLF001  pika has no public way to read otherwise

    def send_now(self, data: bytes) -> float:
        """Hand marshaled frames to the kernel now, not in the next iteration of the loop.

        Returns:
            Time at which they were handed over, in monotonic seconds.
        """
        transport = self._transport
        self.bytes_sent += len(data)
        self.frames_sent += 1
        at = time.monotonic()
        if transport is None:
            return at
        sock = transport._sock if self._kernel else None  # noqa: SLF001  as above
        if sock is None:
            transport.write(data)
            transport._on_socket_writable()  # noqa: SLF001  as above
            return at
        if not transport.get_write_buffer_size():
            # Ignored: the error occurs again when pika writes, and pika handles it.
            with contextlib.suppress(OSError):
                data = data[sock.send(data) :]
        if data:
            transport.write(data)
        return at

    def _receive(self, sock: socket.socket, most: int) -> bytes:
        data, self.read_at = receive(sock, most)
        return data

    def _on_connection_workflow_done(self, conn_or_exc: Any) -> None:
        # After an aborted handshake pika 1.3 and 1.4 pass the class of the error, not an instance, and then fail on it.
        super()._on_connection_workflow_done(conn_or_exc() if isinstance(conn_or_exc, type) else conn_or_exc)

    def _proto_data_received(self, data: bytes) -> None:
        if not self._kernel:
            self.read_at = time.monotonic()
        super()._proto_data_received(data)
