"""`/api/nodes`: resource usage of every node."""

from typing import Any

from ackscope.snapshot import Node, version_of
from ackscope.topology import NodeLink
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    counts,
    each_once,
    flag,
    milliseconds,
    name,
    names,
    objects,
    read,
    text,
)

_FIELDS = FieldTable(
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
    # Always 0 since 4.0: https://github.com/rabbitmq/rabbitmq-server/discussions/12871
    Field("sockets_used", "", count, until=(4, 0)),
    Field("sockets_total", "", count, until=(4, 0)),
    Field("proc_used", "", count),
    Field("proc_total", "", count),
    Field("run_queue", "", count),
    Field("processors", "", count),
    Field("uptime_seconds", "uptime", milliseconds),
    Field("net_ticktime", "", count),
    Field("memory_strategy", "mem_calculation_strategy", text),
    Field("rates_mode", "", text),
    Field("gc_num", "", count),
    Field("gc_bytes_reclaimed", "", count),
    Field("context_switches", "", count),
    Field("plugins", "enabled_plugins", names),
    # Always empty since 4.3, which removed Mnesia and its partition handling (release notes of 4.3.0).
    Field("partitions", "", names, until=(4, 3)),
    # "All these stats are zeroes" since 4.0 (`rabbit_mgmt_external_stats`).
    *(
        Field(attribute, "", milliseconds if attribute.endswith("_time") else count, until=(4, 0))
        for attribute in (
            *("io_read_count", "io_read_bytes", "io_read_avg_time"),
            *("io_write_count", "io_write_bytes", "io_write_avg_time"),
            *("io_sync_count", "io_sync_avg_time", "io_seek_count", "io_seek_avg_time", "io_reopen_count"),
            *("mnesia_ram_tx_count", "mnesia_disk_tx_count", "msg_store_read_count", "msg_store_write_count"),
            *("queue_index_read_count", "queue_index_write_count"),
        )
    ),
)

_CHURN = FieldTable(
    *(
        Field(attribute, "", count)
        for attribute in (
            *("connection_created", "connection_closed", "channel_created", "channel_closed"),
            *("queue_declared", "queue_created", "queue_deleted"),
        )
    )
)

_LINK = FieldTable(
    Field("peer", "name", name, required=True),
    Field("recv_bytes", "", count),
    Field("send_bytes", "", count),
)


def decode_nodes(payload: object, version: Version | None) -> tuple[tuple[Node, ...], Gaps]:
    """Nodes and gaps; a node without a name is dropped and counted, a duplicate is dropped."""
    gaps = Gaps()
    nodes = []
    items = list(objects(payload, "nodes", gaps))
    # CLI tools briefly join the cluster with node names of their own.
    node_names = [item.get("name") for item in items]
    for item in items:
        node_version = _node_version(item, gaps)
        values = read(_FIELDS, item, version_of(node_version) or version, gaps)
        if values["name"] is None:
            continue
        churn = read(_CHURN, item, version, gaps)
        backlog = counts(item, "metrics_gc_queue_length", gaps)
        nodes.append(
            Node(
                **values,
                rabbitmq_version=node_version,
                churn={key: value for key, value in churn.items() if value is not None},
                links=_links(item, node_names, gaps),
                # If a part is unreadable, the sum would be too low.
                backlog=sum(backlog.values()) if backlog and not gaps["metrics_gc_queue_length"] else None,
            )
        )
    return each_once(nodes, lambda it: it.name), gaps


def _links(item: dict[str, Any], peers: list[Any], gaps: Gaps) -> tuple[NodeLink, ...]:
    links = []
    for link in objects(item.get("cluster_links", []), "cluster_links", gaps):
        values = read(_LINK, link, None, gaps)
        if values["peer"] in peers and values["peer"] is not None:
            links.append(NodeLink(**values))
    return each_once(links, lambda it: it.peer)


def _node_version(item: dict[str, Any], gaps: Gaps) -> str | None:
    """Return the version of this node; None for a node that is down. During a rolling upgrade versions differ."""
    applications = list(objects(item.get("applications", []), "applications", gaps))
    version = next((each.get("version") for each in applications if each.get("name") == "rabbit"), None)
    if isinstance(version, str) and version_of(version):
        return version
    gaps.update(["rabbitmq_version"] if applications else [])
    return None
