"""Nodes: memory, disk, file descriptors, processes, alarms (`/api/nodes`).

The official plugin reports one node without naming it; here each series has a `node` label.
"""

from collections.abc import Sequence
from operator import attrgetter

from prometheus_client.core import Metric

from ackscope.snapshot import Node, Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import (
    MetricFamilies,
    MetricReader,
    Spec,
    Value,
    counter,
    gauge,
    only_in,
    untested_because,
    untyped,
)

_LABELS = ("cluster", "node")


def _node(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"/api/nodes {field}", *_LABELS)


def _alarm(name: str, text: str, field: str) -> Spec:
    # Untyped, because the official plugin declares it so.
    return untyped(name, text, f"/api/nodes {field}", *_LABELS)


def _flag(value: bool | None) -> Value:  # noqa: FBT001  converts a flag
    return None if value is None else int(value)


_READERS: tuple[MetricReader[Node], ...] = (
    MetricReader(
        _node("ackscope_node_running", "Whether the node is running.", "running"),
        lambda node: _flag(node.running),
    ),
    MetricReader(
        only_in(
            _node("ackscope_node_being_drained", "Whether the node is in maintenance mode.", "being_drained"),
            since=(4, 0),
        ),
        lambda node: _flag(node.being_drained),
    ),
    MetricReader(
        only_in(
            _node(
                "ackscope_node_partitions",
                "Peers that the node considers partitioned from it; removed with the partition handling in 4.3.",
                "partitions",
            ),
            until=(4, 3),
        ),
        lambda node: None if node.partitions is None else len(node.partitions),
    ),
    MetricReader(
        _node("rabbitmq_process_open_fds", "File descriptors in use.", "fd_used"),
        lambda node: node.fd_used,
    ),
    MetricReader(
        _node("rabbitmq_process_max_fds", "File descriptor limit.", "fd_total"),
        lambda node: node.fd_total,
    ),
    MetricReader(
        only_in(_node("rabbitmq_process_open_tcp_sockets", "Sockets in use.", "sockets_used"), until=(4, 0)),
        lambda node: node.sockets_used,
    ),
    MetricReader(
        only_in(_node("rabbitmq_process_max_tcp_sockets", "Socket limit.", "sockets_total"), until=(4, 0)),
        lambda node: node.sockets_total,
    ),
    MetricReader(
        _node("rabbitmq_process_resident_memory_bytes", "Memory used, as the node calculates it.", "mem_used"),
        lambda node: node.mem_used,
    ),
    MetricReader(
        _node(
            "rabbitmq_resident_memory_limit_bytes",
            "Memory high watermark at which publishers are blocked.",
            "mem_limit",
        ),
        lambda node: node.mem_limit,
    ),
    MetricReader(
        _node("rabbitmq_disk_space_available_bytes", "Free disk space at the data directory.", "disk_free"),
        lambda node: node.disk_free,
    ),
    MetricReader(
        _node(
            "rabbitmq_disk_space_available_limit_bytes",
            "Free disk space limit below which publishers are blocked.",
            "disk_free_limit",
        ),
        lambda node: node.disk_free_limit,
    ),
    MetricReader(
        _node("rabbitmq_erlang_processes_used", "Erlang processes in use.", "proc_used"),
        lambda node: node.proc_used,
    ),
    MetricReader(
        _node("rabbitmq_erlang_processes_limit", "Erlang process limit.", "proc_total"),
        lambda node: node.proc_total,
    ),
    MetricReader(
        _node(
            "rabbitmq_erlang_scheduler_run_queue", "Erlang processes waiting for a scheduler (run queue).", "run_queue"
        ),
        lambda node: node.run_queue,
    ),
    MetricReader(
        _node(
            "rabbitmq_erlang_net_ticktime_seconds",
            "Net tick time: how long a silent peer node counts as alive.",
            "net_ticktime",
        ),
        lambda node: node.net_ticktime,
    ),
    MetricReader(
        _node("rabbitmq_erlang_uptime_seconds", "Time since the node started.", "uptime"),
        lambda node: node.uptime_seconds,
    ),
    MetricReader(
        _alarm(
            "rabbitmq_alarms_memory_used_watermark",
            "1 while the memory alarm blocks the publishers of the whole cluster.",
            "mem_alarm",
        ),
        lambda node: _flag(node.mem_alarm),
    ),
    MetricReader(
        _alarm(
            "rabbitmq_alarms_free_disk_space_watermark",
            "1 while the disk alarm blocks the publishers of the whole cluster.",
            "disk_free_alarm",
        ),
        lambda node: _flag(node.disk_free_alarm),
    ),
)


def _work(name: str, text: str, field: str) -> Spec:
    return counter(f"rabbitmq_{name}_total", text, f"/api/nodes {field}", *_LABELS)


_RUNTIME: tuple[MetricReader[Node], ...] = (
    MetricReader(
        _work("erlang_gc_runs", "Garbage collections of all Erlang processes.", "gc_num"),
        lambda node: node.gc_num,
    ),
    MetricReader(
        _work("erlang_gc_reclaimed_bytes", "Memory reclaimed by garbage collection.", "gc_bytes_reclaimed"),
        lambda node: node.gc_bytes_reclaimed,
    ),
    MetricReader(
        _work("erlang_scheduler_context_switches", "Context switches between Erlang processes.", "context_switches"),
        lambda node: node.context_switches,
    ),
)

_CLASSIC = "Classic queues and their message store; later versions report a constant 0."
_PERSISTER = tuple(
    MetricReader(only_in(_work(name, f"{words}. {_CLASSIC}", field), until=(4, 0)), attrgetter(field))
    for name, words, field in (
        ("io_read_ops", "Reads from disk", "io_read_count"),
        ("io_read_bytes", "Bytes read from disk", "io_read_bytes"),
        ("io_write_ops", "Writes to disk", "io_write_count"),
        ("io_write_bytes", "Bytes written to disk", "io_write_bytes"),
        ("io_sync_ops", "fsync calls", "io_sync_count"),
        ("io_seek_ops", "Seeks", "io_seek_count"),
        ("io_reopen_ops", "Files reopened", "io_reopen_count"),
        ("schema_db_ram_tx", "Mnesia transactions in memory", "mnesia_ram_tx_count"),
        ("schema_db_disk_tx", "Mnesia transactions on disk", "mnesia_disk_tx_count"),
        ("msg_store_read", "Messages read from the message store", "msg_store_read_count"),
        ("msg_store_write", "Messages written to the message store", "msg_store_write_count"),
        ("queue_index_read_ops", "Queue index reads", "queue_index_read_count"),
        ("queue_index_write_ops", "Queue index writes", "queue_index_write_count"),
    )
)
_TIMES = tuple(
    (
        only_in(
            _work(f"io_{name}_time_seconds", f"Time spent in {words}. {_CLASSIC}", f"io_{name}_avg_time"), until=(4, 0)
        ),
        attrgetter(f"io_{name}_avg_time", f"io_{name}_count"),
    )
    for name, words in (("read", "reads"), ("write", "writes"), ("sync", "fsync"), ("seek", "seeks"))
)

_LINK_LABELS = ("cluster", "node", "peer")
_LINKS = tuple(
    (
        untested_because(
            counter(
                f"ackscope_node_link_{name}_bytes_total",
                f"Bytes {words} since the two nodes connected.",
                f"/api/nodes cluster_links {field}",
                *_LINK_LABELS,
            ),
            "needs two nodes",
        ),
        field,
    )
    for name, words, field in (
        ("received", "received from the peer node", "recv_bytes"),
        ("sent", "sent to the peer node", "send_bytes"),
    )
)
BACKLOG = untested_because(
    gauge(
        "ackscope_node_statistics_backlog",
        "Length of the management GC queue. A growing value means that statistics lag.",
        "/api/nodes metrics_gc_queue_length",
        *_LABELS,
    ),
    "an idle statistics collector empties its queue at once",
)
VERSION = gauge(
    "ackscope_node_info",
    "Version and memory calculation strategy of the node; always 1. Versions differ during an upgrade.",
    "/api/nodes applications, mem_calculation_strategy",
    *_LABELS,
    "rabbitmq_version",
    "memory_strategy",
)

UNREACHABLE = gauge(
    "ackscope_cluster_nodes_unreachable",
    "Nodes of the cluster that are not running, as seen by the node that answered. The official plugin "
    "calls it rabbitmq_unreachable_cluster_peers_count, a name that promtool rejects.",
    "/api/nodes running",
    "cluster",
)

_ALL: tuple[MetricReader[Node], ...] = (*_READERS, *_RUNTIME, *_PERSISTER)

SPECS = (
    *(reader.spec for reader in _ALL),
    *(spec for spec, _ in _TIMES),
    *(spec for spec, _ in _LINKS),
    BACKLOG,
    VERSION,
    UNREACHABLE,
)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters; a node that is down has only what the broker still reports."""
    del selection
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        nodes = snapshot.nodes.value or ()
        for node in nodes:
            _one(families, {"cluster": snapshot.cluster, "node": node.name}, node)
        if nodes and all(node.running is not None for node in nodes):
            families.add(UNREACHABLE, {"cluster": snapshot.cluster}, sum(not node.running for node in nodes))
    return families.result()


def _one(families: MetricFamilies, labels: dict[str, str], node: Node) -> None:
    for reader in _ALL:
        families.add(reader.spec, labels, reader.read(node))
    for spec, read in _TIMES:
        each, times = read(node)
        # The broker divides whole microseconds. Round to them again, or a rounding error could make the counter fall.
        families.add(spec, labels, None if each is None or times is None else round(each * times, 6))
    for link in node.links:
        for spec, field in _LINKS:
            families.add(spec, {**labels, "peer": link.peer}, getattr(link, field))
    families.add(BACKLOG, labels, node.backlog)
    if node.rabbitmq_version is not None:
        what = {"rabbitmq_version": node.rabbitmq_version, "memory_strategy": node.memory_strategy or ""}
        families.add(VERSION, {**labels, **what}, 1)


COLLECTOR = Collector(SPECS, collect)
