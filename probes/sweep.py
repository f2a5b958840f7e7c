"""Deletes the queues of a one-shot run, only by their names."""

from collections.abc import Sequence

from ackscope.errors import BrokerError
from probes.probe_connection import ProbeConnection
from probes.queues import fate, is_one_shot
from probes.settings import AmqpServer


async def sweep(server: AmqpServer, queues: Sequence[str], *, prefix: str, run_id: str) -> list[str]:
    """Delete queues of one run. Queues that cannot be deleted expire.

    It uses its own connection, which has never published, so that an alarm does not block it.

    Returns:
        A sentence for each queue that remains.
    """
    left = []
    for name in queues:
        if not is_one_shot(name, prefix, run_id):
            raise ValueError(f"{name!r} is not a queue of run {run_id}")
        try:
            link = await ProbeConnection.open(server, "ackscope-probe sweep")
            try:
                await link.delete(name)
            finally:
                await link.close()
        except BrokerError as error:
            left.append(f"queue {name!r} is left behind ({error}); {fate(name, prefix)}")
    return left
