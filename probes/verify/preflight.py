"""Checks the user's permissions once, so that missing ones are not mistaken for a verdict on the broker."""

from ackscope.errors import Refused
from probes.verify.frames import Closed
from probes.verify.verify_claim import CheckContext


async def preflight(ground: CheckContext) -> None:
    """Declare a queue, publish to it and read from it, through the default exchange and through another one.

    Raises:
        Refused: a permission is missing; the message says which ones are needed.
    """
    async with await ground.client("preflight") as client:
        channel = await client.channel()
        try:
            queue = await ground.queue(channel, "preflight")
            exchange = await ground.exchange(channel, "preflight.exchange")
            await channel.bind(queue, exchange)
            await channel.confirm_select()
            channel.publish(queue)
            channel.publish("", exchange=exchange)
            if not await channel.settled() and channel.closed.done():
                raise channel.closed.result()
            await channel.get(queue, auto_ack=True)
        except Closed as error:
            address = ground.server.address
            raise Refused(
                f"{address.where}: {error}; user {address.username} needs configure, write and read on names that "
                f"start with {ground.prefix.rsplit('.', 1)[0]}, and write on amq.default"
            ) from None
