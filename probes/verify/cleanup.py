"""Deletes the queues and exchanges that a run of claims recorded, and nothing else."""

import asyncio
from collections.abc import Sequence

from pika import spec

from ackscope.errors import BrokerError
from probes.settings import AmqpServer
from probes.verify.channel import RawChannel  # noqa: TC001  read in the body
from probes.verify.client import Client
from probes.verify.frames import Closed
from probes.verify.verify_claim import CheckContext

_WITHIN = 30.0
"""Time limit in seconds for the whole cleanup."""


async def clear(ground: CheckContext) -> list[str]:
    """Delete the objects of the run on a separate connection. Returns a sentence for each that remains."""
    wanted = [(name, spec.Queue.Delete(queue=name), spec.Queue.DeleteOk) for name in ground.queues]
    wanted += [(name, spec.Exchange.Delete(exchange=name), spec.Exchange.DeleteOk) for name in ground.exchanges]
    foreign = [name for name, *_ in wanted if not name.startswith(f"{ground.prefix}.")]
    if foreign:
        raise ValueError(f"{foreign[0]!r} does not belong to run {ground.prefix}")
    left = [name for name, *_ in wanted]
    why = f"not finished within {_WITHIN:g} s"
    try:
        async with asyncio.timeout(_WITHIN):
            why = await _delete(ground.server, wanted, left)
    except (BrokerError, Closed) as error:
        why = str(error)
    except TimeoutError:
        pass
    return [f"{name!r} is left behind ({why}); the broker deletes it within 5 minutes of its last use" for name in left]


async def _delete(server: AmqpServer, wanted: Sequence[tuple[str, object, object]], left: list[str]) -> str:
    """Delete each object and remove it from `left`. Returns the last error, or ""."""
    why = ""
    async with await Client.open(server, "ackscope-verify sweep") as client:
        channel: RawChannel | None = None
        for name, method, reply in wanted:
            channel = channel or await client.channel()
            try:
                await channel.call(method, reply)
            except Closed as error:
                channel = None
                if error.code != 404:
                    why = str(error)
                    continue
            left.remove(name)
    return why
