"""Requests that several checks share, each with a short timeout."""

import asyncio

from pika import spec

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frames import Closed, Delivery

_STEP = 0.02
"""Seconds between two polls."""


async def got(channel: RawChannel, queue: str, within: float = 2.0) -> Delivery | None:
    """Get a message with basic.get, within at most `within` seconds. The message is not acked."""
    for _ in range(int(within / _STEP)):
        found = await channel.get(queue)
        if found is not None:
            return found
        await asyncio.sleep(_STEP)
    return None


async def one(channel: RawChannel, queue: str) -> Delivery:
    """Like `got`, but a message must arrive.

    Raises:
        TimeoutError: no message arrived.
    """
    found = await got(channel, queue)
    if found is None:
        raise TimeoutError(f"no message arrived in {queue}")
    return found


async def filled(channel: RawChannel, queue: str, count: int, within: float = 5.0) -> bool:
    """Wait until a queue has `count` ready messages. Returns whether it was in time."""
    for _ in range(int(within / _STEP)):
        if (await channel.look(queue)).messages >= count:
            return True
        await asyncio.sleep(_STEP)
    return False


async def asked(client: Client, queue: str) -> str:
    """Return the answer to a passive queue.declare on a new channel: `3 messages`, or `404 NOT_FOUND - no queue`."""
    channel = await client.channel()
    try:
        found = await channel.look(queue)
    except Closed as error:
        # Cut the text, because its rest only repeats names.
        return str(error).split(" '", maxsplit=1)[0]
    await channel.close()
    return f"{found.messages} messages"


async def refusal(client: Client, method: type, reply: type, **parts: object) -> int:
    """Call a method on a separate channel. Returns the reply code of the refusal; 0 if it succeeds."""
    channel = await client.channel()
    try:
        await channel.call(method(**parts), reply)
    except Closed as error:
        return error.code
    await channel.close()
    return 0


async def no_queue(client: Client, name: str) -> bool:
    """Whether the queue does not exist."""
    return await refusal(client, spec.Queue.Declare, spec.Queue.DeclareOk, queue=name, passive=True) == 404


async def no_exchange(client: Client, name: str) -> bool:
    """Whether the exchange does not exist."""
    return await refusal(client, spec.Exchange.Declare, spec.Exchange.DeclareOk, exchange=name, passive=True) == 404
