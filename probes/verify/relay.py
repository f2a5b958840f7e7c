"""A TCP relay on loopback that simulates network failures: it can hold back data and cut connections.

It passes bytes unchanged, including TLS. The client still verifies the certificate of the broker, by the name of the
broker.
"""

import asyncio
from dataclasses import replace
from typing import Self

from probes.settings import AmqpServer

_CHUNK = 65_536


class Relay:
    """Relays connections to one address; use it as a context manager.

    Attributes:
        port: port on 127.0.0.1 on which it listens.
        upstream, downstream: events that are set while bytes pass towards the broker, and back from it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.upstream, self.downstream = asyncio.Event(), asyncio.Event()
        self.port = 0

    @classmethod
    async def open(cls, server: AmqpServer) -> Self:
        """Listen on a free port for connections to a broker."""
        relay = cls(server.address.host, server.address.port)
        relay.resume()
        relay._server = await asyncio.start_server(relay._accept, "127.0.0.1", 0)
        relay.port = relay._server.sockets[0].getsockname()[1]
        return relay

    def through(self, server: AmqpServer) -> AmqpServer:
        """Return the address of the same broker through this relay."""
        return replace(
            server,
            address=replace(server.address, host="127.0.0.1", port=self.port),
            tls_name=server.tls_name or server.address.host,
        )

    def pause(self, *, upstream: bool = True, downstream: bool = True) -> None:
        """Pass nothing in these directions, not even the close of a socket, like a broken cable."""
        if upstream:
            self.upstream.clear()
        if downstream:
            self.downstream.clear()

    def resume(self) -> None:
        """Pass everything again, first the data that was held back."""
        self.upstream.set()
        self.downstream.set()

    async def cut(self) -> None:
        """Abort every connection at both ends, and discard the data that was held back."""
        for writer in self._writers:
            writer.transport.abort()
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def close(self) -> None:
        """Stop listening and cut all connections; can be called twice."""
        if self._server is not None:
            self._server.close()
        await self.cut()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            ends.add(far_writer)
            self._writers.add(far_writer)
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer, self.upstream))
                both.create_task(_pump(far_reader, writer, self.downstream))
        except* OSError:
            # The broker is down, or one end was reset. The other end is aborted below.
            pass
        finally:
            for end in ends:
                end.transport.abort()
                self._writers.discard(end)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    while data := await reader.read(_CHUNK):
        await gate.wait()
        writer.write(data)
        await writer.drain()
    await gate.wait()
    # Only this direction has ended; the other end may still send.
    if writer.can_write_eof():
        writer.write_eof()
