"""Breakdown of a node's memory, in groups that an operator can act on."""

from ackscope.findings import Evidence, Unit, source
from ackscope.topology import NodeMemory
from diagnosis.view import View

GROUPS: dict[str, tuple[str, ...]] = {
    "queues": ("queue_procs", "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs"),
    "streams": ("stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs"),
    "quorum_log": ("quorum_ets",),
    "binaries": ("binary",),
    "connections": ("connection_readers", "connection_writers", "connection_channels", "connection_other"),
    "statistics": ("mgmt_db", "metrics"),
    "message_index": ("msg_index",),
    "metadata": ("mnesia", "metadata_store", "metadata_store_ets"),
    "plugins": ("plugins",),
    "base": ("other_proc", "other_ets", "other_system", "code", "atom"),
    "unused": ("allocated_unused", "reserved_unallocated"),
}
"""Parts of the breakdown by group. Source: https://www.rabbitmq.com/docs/memory-use#breakdown

The macro `memory_group` has the words for each group.
"""

UNUSED = GROUPS["unused"]


def total(memory: NodeMemory) -> int | None:
    """Return all memory of the node in bytes, counted as for its alarm."""
    by_name = {"rss": memory.rss, "erlang": memory.erlang, "allocated": memory.allocated, "legacy": memory.erlang}
    return by_name.get(memory.strategy or "rss") or memory.rss


def dominant_group(view: View, node: str | None) -> str | None:
    """Return the group that uses a third of the memory or more, except what every node needs; None without one."""
    memory = view.memory.get(node or "")
    if memory is None or not (whole := total(memory)):
        return None
    group, used = next((each for each in _ranked(memory) if each[0] != "base"), (None, 0))
    return group if used >= whole / 3 else None


def memory_evidence(view: View, node: str | None) -> list[Evidence]:
    """Return the three largest groups of a node's memory as evidence; empty if the breakdown is unknown."""
    memory = view.memory.get(node or "")
    if memory is None:
        return []
    return [
        Evidence(
            key="memory_part",
            value=used,
            unit=Unit.BYTES,
            source=source("/api/nodes/<node>/memory", *GROUPS[group]),
            facts={"memory_group_name": group, "total_bytes": total(memory)},
        )
        for group, used in _ranked(memory)[:3]
    ]


def _ranked(memory: NodeMemory) -> list[tuple[str, int]]:
    """Groups and their bytes, largest first."""
    sums = [(group, sum(memory.parts.get(part, 0) for part in parts)) for group, parts in GROUPS.items()]
    return sorted((each for each in sums if each[1]), key=lambda each: (-each[1], each[0]))
