"""`/api/nodes/<node>/memory`: where the memory of each node goes."""

from typing import Any

from ackscope.topology import NodeMemory
from exporter.broker.fields import Field, Gaps, Table, Version, count, of_paths, read, text

_FIELDS = Table(
    Field("rss", "total.rss", count),
    Field("erlang", "total.erlang", count),
    Field("allocated", "total.allocated", count),
    Field("strategy", "", text),
)

_NOT_PARTS = frozenset({"total", "strategy"})

_UNTIL = {
    # Gone with mirrored queues, and with Mnesia: what a later version sends is a zero.
    "queue_slave_procs": (4, 0),
    "mnesia": (4, 3),
}


def decode_memory(payload: Any, version: Version | None) -> tuple[tuple[NodeMemory, ...], Gaps]:
    """The memory of each node and the gaps.

    Args:
        payload: node -> {"memory": {...}}, or {"error": why} for a node that could not be asked, which is a gap.
        version: decides which parts it no longer fills.
    """
    gaps = Gaps()
    nodes = []
    for node, answer in of_paths(payload, "memory", gaps):
        memory = answer.get("memory") if isinstance(answer, dict) else None
        # "not_available" is what a node says whose memory cannot be asked.
        if not isinstance(memory, dict):
            gaps["memory"] += 1
            continue
        parts = {}
        for part, value in memory.items():
            until = _UNTIL.get(part)
            if part in _NOT_PARTS or (until is not None and (version is None or version >= until)):
                continue
            try:
                parts[part] = count(value)
            except ValueError:
                gaps[part] += 1
        nodes.append(NodeMemory(node=node, parts=parts, **read(_FIELDS, memory, version, gaps)))
    return tuple(nodes), gaps
