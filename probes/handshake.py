"""The handshake probe: times each step of a client from host name to open channel.

Name resolution, TCP, TLS, AMQP up to the open connection, and the channel are timed separately, so that a failure names
its step and its reason. Every connection is closed in order.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable
from typing import TypeVar

from ackscope.errors import BrokerError, Unreachable
from probes.amqp_errors import explain_close, explain_open
from probes.catalogue.handshake import PROBE, HandshakeSettings
from probes.opening import Opening, Refusal
from probes.parameters import tls
from probes.periodic_stream import PeriodicStream
from probes.probe_stream import ProbeStream, StreamContext
from probes.timed_socket import connect

NAME = PROBE.name
DNS, TCP, TLS, OPEN, CHANNEL = "dns", "tcp", "tls", "open", "channel"

_FAREWELL = 2.0

T = TypeVar("T")


class _Over(Exception):
    """A step failed and was recorded, so the handshake stops."""


class HandshakeStream(PeriodicStream):
    """Stream that opens and closes one connection per interval."""

    def __init__(self, context: StreamContext, settings: HandshakeSettings) -> None:
        super().__init__(context, context.new_stats(context.identity(NAME, NAME, None)), settings.interval)
        self._settings, self._server = settings, context.server
        self._trust: ssl.SSLContext | None = None

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`. A failed step is recorded and does not end the session."""
        self.stats.running()
        await self.repeat(lambda _: self._shake())

    async def _shake(self) -> None:
        try:
            await self._all()
        except _Over:
            return

    async def _all(self) -> None:
        loop, address = asyncio.get_running_loop(), self._server.address
        trust = await self._trusted() if address.tls else None
        found = await self._timed(DNS, loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
        connected = await self._timed(TCP, connect(found))
        try:
            if trust is None:
                reader, writer = await asyncio.open_connection(sock=connected)
            else:
                name = address.host
                reader, writer = await self._timed(
                    TLS, asyncio.open_connection(sock=connected, ssl=trust, server_hostname=name)
                )
        except BaseException:
            self._trust = None
            connected.close()
            raise
        opening = Opening(self._server, f"ackscope-probe {NAME}", reader, writer)
        try:
            await self._timed(OPEN, opening.connection())
            self.stats.connected(opening.product)
            await self._timed(CHANNEL, opening.channel())
        finally:
            await opening.close(_FAREWELL)

    async def _timed(self, step: str, work: Awaitable[T]) -> T:
        """Run a step and record its result.

        Raises:
            _Over: the step failed.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._settings.timeout):
                result = await work
        except (OSError, Refusal) as error:
            self.stats.steps.failed(step, began, str(self._explain(step, error)))
            raise _Over from None
        self.stats.steps.ok(step, began, loop.time() - began)
        return result

    def _explain(self, step: str, error: OSError | Refusal) -> BrokerError:
        address = self._server.address
        if step == DNS and isinstance(error, TimeoutError):
            return Unreachable(f"{address.where}: resolving host name {address.host!r} timed out")
        if step == CHANNEL:
            return explain_close(error, self._server, "opening a channel")
        return explain_open(error, self._server)

    async def _trusted(self) -> ssl.SSLContext:
        """Return the TLS context. It is loaded again after a failed TLS handshake."""
        if self._trust is None:
            # In a thread, because loading the system's CA certificates takes tens of milliseconds.
            self._trust = await asyncio.to_thread(tls, self._server)
        return self._trust


def streams(settings: HandshakeSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the only stream."""
    return [HandshakeStream(context, settings)]
