"""`/api/vhosts`: virtual hosts, with their totals of messages and bytes."""

from typing import Any

from ackscope.topology import VHost
from exporter.broker.fields import (
    Field,
    Gaps,
    Table,
    Version,
    count,
    flag,
    if_said,
    if_set,
    mapping,
    name,
    objects,
    read,
    text,
)
from exporter.broker.stats import read_stats

_FIELDS = Table(
    Field("name", "", name, required=True),
    Field("description", "", if_set(name)),
    # 3.10 to 3.12 spell "not set" as "undefined".
    Field("default_queue_type", "", if_said(text)),
    Field("tracing", "", flag),
    Field("protected_from_deletion", "", flag),
    Field("messages", "", count),
    Field("messages_ready", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
    Field("recv_oct", "", count),
    Field("send_oct", "", count),
)


def decode_vhosts(payload: Any, version: Version | None) -> tuple[tuple[VHost, ...], Gaps]:
    """The virtual hosts and their gaps; one without a name is dropped and counted."""
    gaps = Gaps()
    vhosts = []
    for item in objects(payload, "vhosts", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None:
            vhosts.append(VHost(**values, cluster_state=_states(item, gaps), stats=read_stats(item, gaps)))
    return tuple(vhosts), gaps


def _states(item: dict[str, Any], gaps: Gaps) -> dict[str, str]:
    """Node -> state of the virtual host there."""
    states = {}
    try:
        for node, state in mapping(item.get("cluster_state", {})).items():
            states[node] = text(state)
    except ValueError:
        gaps["cluster_state"] += 1
    return states
