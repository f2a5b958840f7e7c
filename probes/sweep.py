"""Takes away what a one-shot run made on the broker: its own queues by their names, and nothing else."""

from collections.abc import Sequence

from ackscope.errors import BrokerError
from probes.probe_connection import ProbeConnection
from probes.queues import fate, is_one_shot
from probes.settings import AmqpServer


async def sweep(server: AmqpServer, queues: Sequence[str], *, prefix: str, run_id: str) -> list[str]:
    """Delete queues of one run; those that could not be deleted do no harm.

    Uses a connection of its own, which has never published: the broker does not block it during an alarm.

    Returns:
        A sentence for each queue that is still there.
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
