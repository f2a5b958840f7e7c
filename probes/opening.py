"""Opens an AMQP connection frame by frame, so that each part can be timed. Uses only the frame codec of pika."""

import asyncio
import struct
from typing import Any, TypeVar

from pika import exceptions, frame, spec

from probes.parameters import client_properties
from probes.settings import AmqpServer

_HEADER = struct.Struct(">BHL")
_METHOD = 1
_LARGEST = 131_072
_CHANNEL = 1
_LOCALE = "en_US"

Refusal = exceptions.AMQPError
"""Base class of the exceptions if the broker refuses the connection."""

M = TypeVar("M")


class Opening:
    """Opens a connection and one channel, and closes them again.

    Args:
        name: shown by the broker as the connection's name.
    """

    def __init__(
        self, server: AmqpServer, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._name = server, name
        self._reader, self._writer = reader, writer
        self._open = False
        self.product = ""

    async def connection(self) -> None:
        """Open the connection, from the protocol header to connection.open-ok.

        Raises:
            AMQPError: the broker refuses the connection.
            OSError: the connection was lost.
        """
        address = self._server.address
        self._writer.write(frame.ProtocolHeader().marshal())
        start = await self._expect(spec.Connection.Start, exceptions.IncompatibleProtocolError)
        properties = start.server_properties or {}
        self.product = f"{_text(properties.get('product', 'unknown'))} {_text(properties.get('version', ''))}".strip()
        properties = {**client_properties(self._name), "capabilities": {"authentication_failure_close": True}}
        response = f"\0{address.username}\0{self._server.password()}"
        self._send(
            spec.Connection.StartOk(client_properties=properties, mechanism="PLAIN", response=response, locale=_LOCALE)
        )
        tune = await self._expect(spec.Connection.Tune, exceptions.ProbableAuthenticationError)
        self._send(spec.Connection.TuneOk(channel_max=tune.channel_max, frame_max=tune.frame_max, heartbeat=0))
        self._send(spec.Connection.Open(virtual_host=address.vhost, insist=True))
        await self._expect(spec.Connection.OpenOk, exceptions.ProbableAccessDeniedError)
        self._open = True

    async def channel(self) -> None:
        """Open a channel. Raises the same errors as `connection`."""
        self._send(spec.Channel.Open(), _CHANNEL)
        await self._expect(spec.Channel.OpenOk, exceptions.ConnectionClosed)

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109  bounds the close for every caller
        """Close the connection in order if it is open. If the broker does not respond, abort it."""
        try:
            async with asyncio.timeout(timeout):
                if self._open:
                    self._send(spec.Connection.Close(200, "done", 0, 0))
                    await self._expect(spec.Connection.CloseOk, exceptions.ConnectionClosed)
                self._writer.close()
                await self._writer.wait_closed()
        except (OSError, exceptions.AMQPError):
            self._writer.transport.abort()

    def _send(self, method: Any, channel: int = 0) -> None:
        self._writer.write(frame.Method(channel, method).marshal())

    async def _expect(self, kind: type[M], otherwise: type[exceptions.AMQPError]) -> M:
        """Read the next method, which must be of this type.

        Raises:
            AMQPError: the broker closes the connection instead; `otherwise` if it gives no reason.
        """
        method = await self._next(otherwise)
        if isinstance(method, kind):
            return method
        if isinstance(method, spec.Connection.Close):
            self._send(spec.Connection.CloseOk())
            if otherwise is exceptions.ProbableAuthenticationError:
                raise otherwise(f"({method.reply_code}) {method.reply_text!r}")
            raise exceptions.ConnectionClosedByBroker(method.reply_code, str(method.reply_text))
        raise otherwise(f"(0) 'unexpected {getattr(method, 'NAME', method)}'")

    async def _next(self, otherwise: type[exceptions.AMQPError]) -> Any:
        try:
            head = await self._reader.readexactly(_HEADER.size)
            kind, _, size = _HEADER.unpack(head)
            if kind != _METHOD or size > _LARGEST:
                raise exceptions.IncompatibleProtocolError
            whole = head + await self._reader.readexactly(size + 1)
        except asyncio.IncompleteReadError:
            raise otherwise("(0) 'the connection was closed without a reason'") from None
        try:
            return frame.decode_frame(whole)[1].method
        except (LookupError, ValueError, struct.error, AttributeError, exceptions.AMQPError):
            raise otherwise("(0) 'the server does not speak AMQP 0-9-1'") from None


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
