"""`/api/vhosts`: virtual hosts with their message and byte totals."""

from typing import Any

from ackscope.topology import VHost
from exporter.broker.endpoints.message_stats import read_stats
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    each_once,
    flag,
    if_defined,
    if_set,
    mapping,
    name,
    objects,
    read,
    text,
)

_FIELDS = FieldTable(
    Field("name", "", name, required=True),
    Field("description", "", if_set(name)),
    # 3.10 to 3.12 send "undefined" for "not set".
    Field("default_queue_type", "", if_defined(text)),
    Field("tracing", "", flag),
    Field("protected_from_deletion", "", flag),
    Field("messages", "", count),
    Field("messages_ready", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
    Field("recv_oct", "", count),
    Field("send_oct", "", count),
)


def decode_vhosts(payload: object, version: Version | None) -> tuple[tuple[VHost, ...], Gaps]:
    """Virtual hosts and gaps; a virtual host without a name is dropped and counted."""
    gaps = Gaps()
    vhosts = []
    for item in objects(payload, "vhosts", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None:
            vhosts.append(VHost(**values, cluster_state=_states(item, gaps), stats=read_stats(item, gaps)))
    return each_once(vhosts, lambda it: it.name), gaps


def _states(item: dict[str, Any], gaps: Gaps) -> dict[str, str]:
    """Return the state of the virtual host on each node."""
    states = {}
    try:
        for node, state in mapping(item.get("cluster_state", {})).items():
            states[node] = text(state)
    except ValueError:
        gaps["cluster_state"] += 1
    return states
