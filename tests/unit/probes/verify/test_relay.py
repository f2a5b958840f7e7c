import asyncio
from contextlib import asynccontextmanager

import pytest

from ackscope.address import parse_amqp
from probes.settings import AmqpServer
from probes.verify.relay import Relay

PATIENCE = 10.0


@asynccontextmanager
async def echoing():
    """Yield a relay in front of an echo server, a connection through it, and what the server received."""
    received = bytearray()

    async def echo(reader, writer):
        try:
            while data := await reader.read(100):
                received.extend(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    target = AmqpServer(parse_amqp(f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    async with server, await Relay.open(target) as relay:
        address = relay.through(target).address
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            yield relay, reader, writer, received
        finally:
            writer.close()


async def exactly(reader, count):
    """Read this many bytes, with a timeout."""
    async with asyncio.timeout(PATIENCE):
        return await reader.readexactly(count)


def test_bytes_pass_both_ways():
    """Unchanged, in order."""

    async def run():
        async with echoing() as (_, reader, writer, _):
            writer.write(b"there and back")
            return await exactly(reader, 14)

    assert b"there and back" == asyncio.run(run())


def test_what_is_held_back_passes_on_resume():
    """Paused downstream, the server gets the bytes and its answer waits in the relay."""

    async def run():
        async with echoing() as (relay, reader, writer, received):
            relay.pause(upstream=False)
            writer.write(b"asked")
            async with asyncio.timeout(PATIENCE):
                while bytes(received) != b"asked":  # noqa: ASYNC110  the other end of a socket sets no event
                    await asyncio.sleep(0.005)
            answer = asyncio.create_task(reader.readexactly(5))
            done, _ = await asyncio.wait({answer}, timeout=0.05)
            relay.resume()
            async with asyncio.timeout(PATIENCE):
                return len(done), await answer

    assert (0, b"asked") == asyncio.run(run())


def test_a_cut_ends_the_connection_and_loses_what_was_held_back():
    """The server never sees the bytes that were under way."""

    async def run():
        async with echoing() as (relay, reader, writer, received):
            writer.write(b"first")
            await exactly(reader, 5)
            relay.pause()
            writer.write(b"lost")
            await asyncio.sleep(0.02)
            await relay.cut()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await exactly(reader, 1)
            return bytes(received)

    assert b"first" == asyncio.run(run())


def test_a_broker_that_is_away_ends_the_connection():
    """The client sees a closed connection, the relay goes on."""

    async def run():
        nowhere = AmqpServer(parse_amqp("amqp://127.0.0.1:1"))
        async with await Relay.open(nowhere) as relay:
            for _ in range(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await exactly(reader, 1)
                writer.close()

    asyncio.run(run())
