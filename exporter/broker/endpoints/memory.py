"""`/api/nodes/<node>/memory`: memory breakdown of each node."""

from ackscope.topology import NodeMemory
from exporter.broker.fields import Field, FieldTable, Gaps, Version, by_key, count, read, text

_FIELDS = FieldTable(
    Field("rss", "total.rss", count),
    Field("erlang", "total.erlang", count),
    Field("allocated", "total.allocated", count),
    Field("strategy", "", text),
)

_NOT_PARTS = frozenset({"total", "strategy"})

_UNTIL = {
    # Mirrored queues and Mnesia were removed in these versions; later ones send 0.
    "queue_slave_procs": (4, 0),
    "mnesia": (4, 3),
}


def decode_memory(payload: object, version: Version | None) -> tuple[tuple[NodeMemory, ...], Gaps]:
    """Memory of each node, and gaps.

    Args:
        payload: node -> {"memory": {...}}, or {"error": text} for a node that could not be read, which is a gap.
        version: version of the broker; parts that it no longer fills are ignored.
    """
    gaps = Gaps()
    nodes = []
    for node, answer in by_key(payload, "memory", gaps):
        memory = answer.get("memory") if isinstance(answer, dict) else None
        # The broker sends "not_available" for a node whose memory it cannot query.
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
