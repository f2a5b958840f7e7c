"""Ports in front of real brokers: a load balancer, and an end of TLS."""

import asyncio
import itertools
import ssl
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


@asynccontextmanager
async def relay(ports, tls=None):
    """A load balancer on loopback: each connection goes to the next of the ports.

    Yields its port, and what cuts all connections. With `tls`, a context, it speaks TLS to clients.
    """
    turns, open_ = itertools.cycle(ports), set()

    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def connected(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", next(turns))
        open_.add(writer)
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer))
        finally:
            open_.discard(writer)
            back.close()
            writer.close()

    def cut():
        for writer in open_:
            writer.transport.abort()

    async with await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1], cut


@asynccontextmanager
async def tls_in_front(address, certificate):
    """A port that speaks TLS and hands everything on to the broker."""
    parts = urlsplit(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with relay([parts.port], tls=context) as (port, _):
        yield f"amqps://{parts.username}:{parts.password}@127.0.0.1:{port}"
