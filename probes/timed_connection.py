"""Base of the connections whose protocol a library speaks over a `TimedSocket`: how they wait, close and end."""

import asyncio
from typing import Any, TypeVar

from ackscope.errors import BrokerError, Unreachable
from ackscope.failures import FailurePhrase
from probes.settings import AmqpServer
from probes.timed_socket import TimedSocket

TIMEOUT = 10.0
"""Timeout in seconds for opening a connection, and for each answer of the broker."""

_FAREWELL = 0.4

T = TypeVar("T")


class TimedConnection:
    """Base class of a connection to one node. A subclass resolves `_gone` once the broker has closed the connection.

    Attributes:
        closed: future whose result is the reason why the connection ended.
        product: product and version of the broker, such as "RabbitMQ 4.3.6".
        read_at: when the bytes that are being processed reached this machine, in monotonic seconds.
    """

    def __init__(self, server: AmqpServer, sock: TimedSocket) -> None:
        self._server, self._socket = server, sock
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._closing = False
        self._beating: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[BrokerError] = self._loop.create_future()
        self.product, self.read_at = "", 0.0

    @property
    def where(self) -> str:
        """Host and port of the broker."""
        return self._server.address.where

    @property
    def alive(self) -> bool:
        """Whether the connection is open."""
        return not (self._closing or self.closed.done())

    async def answer(self, future: "asyncio.Future[Any]", what: str) -> Any:
        """Wait for `future`, or for the connection to end; `what` ends the sentence "no answer within 10 s ...".

        Raises:
            BrokerError: the connection ended first, or the timeout.
        """
        await asyncio.wait({future, self.closed}, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if self.closed.done():
            raise self.closed.result()
        raise Unreachable(f"{self.where}: {FailurePhrase.NO_ANSWER} {TIMEOUT:g} s {what}")

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond in time, cut it. Can be called twice."""
        if self.alive:
            self._closing = True
            self._send_close()
            await asyncio.wait({self._gone}, timeout=_FAREWELL)
        self.cut()

    def cut(self) -> None:
        """Cut the connection without a close, like a crash of the client. Can be called twice."""
        self._closing = True
        self.end(Unreachable(f"{self.where}: closed by this program"))
        self._socket.close()
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None

    def end(self, error: BrokerError) -> None:
        """Note why the connection is of no use any more; the first reason counts."""
        resolve(self.closed, error)

    def _send_close(self) -> None:
        raise NotImplementedError


def resolve(future: "asyncio.Future[T]", value: T) -> None:
    """Set the result of a future that has none yet."""
    if not future.done():
        future.set_result(value)
