"""Where a node's memory goes, in words of what a person can do about it."""

from ackscope.reports import EvidenceReport
from ackscope.topology import NodeMemory
from diagnosis.view import View
from diagnosis.words import amount, size

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("queues and their messages", ("queue_procs", "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs")),
    ("streams", ("stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs")),
    ("quorum queue log (until it is written to disk)", ("quorum_ets",)),
    ("message bodies and frames on their way", ("binary",)),
    (
        "connections and channels",
        ("connection_readers", "connection_writers", "connection_channels", "connection_other"),
    ),
    ("statistics for the management API", ("mgmt_db", "metrics")),
    ("message index of classic queues", ("msg_index",)),
    ("metadata: queues, bindings, users", ("mnesia", "metadata_store", "metadata_store_ets")),
    ("plugins", ("plugins",)),
    ("other processes and tables", ("other_proc", "other_ets", "other_system", "code", "atom")),
    ("free, kept by the allocators", ("allocated_unused", "reserved_unallocated")),
)
"""What the parts of the breakdown stand for. Source: https://www.rabbitmq.com/docs/memory-use#breakdown"""

UNUSED = ("allocated_unused", "reserved_unallocated")
_EVERYBODY = "other processes and tables"


def ranked(memory: NodeMemory) -> list[tuple[str, int]]:
    """What uses the memory, largest first, in bytes."""
    sums = [(words, sum(memory.parts.get(part, 0) for part in parts)) for words, parts in _GROUPS]
    return sorted((each for each in sums if each[1]), key=lambda each: (-each[1], each[0]))


def total(memory: NodeMemory) -> int | None:
    """All that the node uses, by the count that its alarm goes by."""
    by_name = {"rss": memory.rss, "erlang": memory.erlang, "allocated": memory.allocated, "legacy": memory.erlang}
    return by_name.get(memory.strategy or "rss") or memory.rss


def culprit(view: View, node: str | None) -> str | None:
    """The part that uses most of the memory of a node, where one stands out; beside what every node needs."""
    memory = view.memory.get(node or "")
    if memory is None or not (whole := total(memory)):
        return None
    words, used = next((each for each in ranked(memory) if each[0] != _EVERYBODY), ("", 0))
    return words if used >= whole / 3 else None


def breakdown(view: View, node: str | None) -> list[EvidenceReport]:
    """The three largest parts of a node's memory; nothing where they are not known."""
    memory = view.memory.get(node or "")
    if memory is None:
        return []
    whole = total(memory)
    return [
        EvidenceReport(
            what=f"memory: {words}",
            value=size(used) + (f" of {size(whole)}" if whole else ""),
            source="/api/nodes/<node>/memory",
        )
        for words, used in ranked(memory)[:3]
    ]


def largest_queues(view: View, node: str | None) -> list[EvidenceReport]:
    """The queues that hold the most memory of the node."""
    here = [queue for queue in view.queues if queue.memory and (node is None or queue.node == node)]
    here.sort(key=lambda queue: (-(queue.memory or 0), queue.key))
    return [
        EvidenceReport(
            what=f"queue {queue.name!r} in vhost {queue.vhost!r}",
            value=f"{size(queue.memory or 0)} of memory, {amount(queue.messages or 0, 'message')}",
            source="/api/queues memory, messages",
        )
        for queue in here[:3]
    ]
