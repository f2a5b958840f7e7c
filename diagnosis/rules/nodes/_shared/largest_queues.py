"""The queues of a node that use most of its memory, or of its disk."""

from collections.abc import Sequence

from ackscope.findings import Evidence, Unit, source
from ackscope.snapshot import Queue
from diagnosis.view import View

_SHOWN = 3


def by_memory(view: View, node: str | None) -> list[Queue]:
    """Return the three queues that use most memory of the node, or of the cluster if the node is unknown."""
    here = [queue for queue in view.queues if queue.memory and (node is None or queue.node == node)]
    return sorted(here, key=lambda queue: (-(queue.memory or 0), queue.key))[:_SHOWN]


def by_disk(view: View, node: str | None) -> list[Queue]:
    """Return the three queues with most bytes on the node; a quorum queue stores its bytes on each member."""
    here = [queue for queue in view.queues if queue.message_bytes and (node is None or is_on(queue, node))]
    return sorted(here, key=lambda queue: (-(queue.message_bytes or 0), queue.key))[:_SHOWN]


def is_on(queue: Queue, node: str) -> bool:
    """Whether the queue keeps messages on the node."""
    return node in (queue.members or (queue.leader or queue.node,))


def memory_evidence(queues: Sequence[Queue]) -> list[Evidence]:
    """The memory of each queue."""
    return [
        Evidence(
            key="queue_memory",
            value=queue.memory,
            unit=Unit.BYTES,
            source=source("/api/queues", "memory", "messages"),
            facts=_queue(queue),
        )
        for queue in queues
    ]


def disk_evidence(queues: Sequence[Queue]) -> list[Evidence]:
    """The message bytes of each queue."""
    return [
        Evidence(
            key="queue_bytes",
            value=queue.message_bytes,
            unit=Unit.BYTES,
            source=source("/api/queues", "message_bytes", "messages"),
            facts=_queue(queue),
        )
        for queue in queues
    ]


def _queue(queue: Queue) -> dict[str, str | int]:
    return {"queue_vhost": queue.vhost, "queue_name": queue.name, "queue_messages": queue.messages or 0}
