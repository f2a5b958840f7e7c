"""An AMQP client that exposes every frame in order and every close with its code, and whose socket can be cut.

It serves checks of semantics. For timing use `probes.probe_connection`.
"""

import asyncio
from typing import Any, Self

from pika.adapters.asyncio_connection import AsyncioConnection

from ackscope.errors import BrokerError, Unreachable
from probes.amqp_errors import explain_open
from probes.parameters import parameters
from probes.settings import AmqpServer
from probes.verify.channel import TIMEOUT, RawChannel, closed, resolve
from probes.verify.frames import Closed  # noqa: TC001  read in the body


class Client:
    """One connection.

    Attributes:
        product: product and version of the broker, such as "RabbitMQ 4.3.6".
        closed: future whose result tells how the connection ended.
        blocked: reason why the broker blocks the connection; None if it does not.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection: Any = None
        self.closed: asyncio.Future[Closed] = self._loop.create_future()
        self.blocked: str | None = None
        self.product = ""

    @classmethod
    async def open(cls, server: AmqpServer, name: str, *, heartbeat: int | None = None) -> Self:
        """Connect. `heartbeat` in seconds overrides the default.

        Raises:
            BrokerError: the connection failed; the message says why.
        """
        client = cls()
        opened: asyncio.Future[BrokerError | None] = client._loop.create_future()
        wanted = parameters(server, name, TIMEOUT)
        if heartbeat is not None:
            wanted.heartbeat = heartbeat
        client._connection = AsyncioConnection(
            wanted,
            on_open_callback=lambda _: resolve(opened, None),
            on_open_error_callback=lambda _, error: resolve(opened, explain_open(error, server)),
            on_close_callback=lambda _, error: resolve(client.closed, closed(error)),
            custom_ioloop=client._loop,
        )
        try:
            async with asyncio.timeout(TIMEOUT + 1.0):
                failed = await opened
        except TimeoutError:
            client.cut()
            raise Unreachable(f"{server.address.where}: no answer within {TIMEOUT:g} s") from None
        if failed is not None:
            raise failed
        properties = client._connection.server_properties or {}
        client.product = f"{properties.get('product', 'unknown')} {properties.get('version', '')}".strip()
        client._connection.add_on_connection_blocked_callback(client._on_blocked)
        client._connection.add_on_connection_unblocked_callback(client._on_unblocked)
        return client

    async def channel(self) -> RawChannel:
        """Open a channel.

        Raises:
            Closed: the connection has ended.
        """
        opened: asyncio.Future[Any] = self._loop.create_future()
        if self.closed.done():
            raise self.closed.result()
        raw = self._connection.channel(on_open_callback=lambda channel: resolve(opened, channel))
        channel = RawChannel(raw, self._connection)
        await channel.answer(opened, "channel.open")
        return channel

    def cut(self) -> None:
        """Cut the connection without a close, like a crash of the client."""
        if not self.closed.done():
            # pika has no public way to drop the socket.
            self._connection._terminate_stream(ConnectionError("cut on purpose"))  # noqa: SLF001  see above

    async def close(self) -> None:
        """Close the connection in order. If the broker does not respond, cut it. Can be called twice."""
        if self._connection.is_open:
            self._connection.close()
        await asyncio.wait({self.closed}, timeout=1.0)
        self.cut()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _on_blocked(self, _: Any, method: Any) -> None:
        self.blocked = str(method.method.reason)

    def _on_unblocked(self, _: Any, __: Any) -> None:
        self.blocked = None
