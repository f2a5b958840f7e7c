"""`/api/nodes`: the resources of every node."""

from typing import Any

from ackscope.snapshot import Node
from exporter.broker.fields import (
    Field,
    Gaps,
    Version,
    count,
    flag,
    milliseconds,
    name,
    names,
    objects,
    read,
    version_of,
)

_FIELDS = (
    Field("name", "", name, required=True),
    Field("running", "", flag),
    Field("being_drained", "", flag),
    Field("mem_used", "", count),
    Field("mem_limit", "", count),
    Field("mem_alarm", "", flag),
    Field("disk_free", "", count),
    Field("disk_free_limit", "", count),
    Field("disk_free_alarm", "", flag),
    Field("fd_used", "", count),
    Field("fd_total", "", count),
    # Constant zeros from 4.0 on: https://github.com/rabbitmq/rabbitmq-server/discussions/12871
    Field("sockets_used", "", count, until=(4, 0)),
    Field("sockets_total", "", count, until=(4, 0)),
    Field("proc_used", "", count),
    Field("proc_total", "", count),
    Field("run_queue", "", count),
    Field("processors", "", count),
    Field("uptime_seconds", "uptime", milliseconds),
    Field("net_ticktime", "", count),
    # Always empty from 4.3 on: Mnesia is gone, and with it its partitions (release notes of 4.3.0).
    Field("partitions", "", names, until=(4, 3)),
)


def decode_nodes(payload: Any, version: Version | None) -> tuple[tuple[Node, ...], Gaps]:
    """The nodes and their gaps; one without a name is dropped and counted."""
    gaps = Gaps()
    nodes = []
    for item in objects(payload, "nodes", gaps):
        values = read(_FIELDS, item, _own_version(item) or version, gaps)
        if values["name"] is not None:
            nodes.append(Node(**values))
    return tuple(nodes), gaps


def _own_version(item: dict[str, Any]) -> Version | None:
    """The version of this very node: during an upgrade they differ."""
    applications = item.get("applications")
    for application in applications if isinstance(applications, list) else []:
        if isinstance(application, dict) and application.get("name") == "rabbit":
            return version_of(application.get("version"))
    return None
