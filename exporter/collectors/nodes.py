"""The nodes: memory, disk, file descriptors, processes, alarms (`/api/nodes`).

The official plugin answers for one node and names none; here each series has a `node` label.
"""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Node, Snapshot
from exporter.collectors.contract import Collector, Limits
from exporter.metrics import Families, Kind, Reading, Spec, Value, gauge

_LABELS = ("cluster", "node")


def _node(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"/api/nodes {field}", *_LABELS)


def _alarm(name: str, text: str, field: str) -> Spec:
    # Untyped, because the official plugin declares it so.
    return Spec(name=name, kind=Kind.UNTYPED, help=text, labels=_LABELS, source=f"/api/nodes {field}")


def _flag(value: bool | None) -> Value:  # noqa: FBT001  it converts a flag
    return None if value is None else int(value)


_READINGS: tuple[Reading[Node], ...] = (
    Reading(
        _node("ackscope_node_running", "Whether the node runs.", "running"),
        lambda node: _flag(node.running),
    ),
    Reading(
        _node("ackscope_node_being_drained", "Whether the node is in maintenance mode.", "being_drained"),
        lambda node: _flag(node.being_drained),
    ),
    Reading(
        _node(
            "ackscope_node_partitions",
            "Peers that the node saw itself cut off from; gone with the partition handling of 4.3.",
            "partitions",
        ),
        lambda node: None if node.partitions is None else len(node.partitions),
    ),
    Reading(
        _node("rabbitmq_process_open_fds", "File descriptors in use.", "fd_used"),
        lambda node: node.fd_used,
    ),
    Reading(
        _node("rabbitmq_process_max_fds", "File descriptors that may be open.", "fd_total"),
        lambda node: node.fd_total,
    ),
    Reading(
        _node("rabbitmq_process_open_tcp_sockets", "Sockets in use; before 4.0 only.", "sockets_used"),
        lambda node: node.sockets_used,
    ),
    Reading(
        _node("rabbitmq_process_max_tcp_sockets", "Sockets that may be open; before 4.0 only.", "sockets_total"),
        lambda node: node.sockets_total,
    ),
    Reading(
        _node("rabbitmq_process_resident_memory_bytes", "Memory in use, as the node counts it.", "mem_used"),
        lambda node: node.mem_used,
    ),
    Reading(
        _node("rabbitmq_resident_memory_limit_bytes", "Memory at which publishers are blocked.", "mem_limit"),
        lambda node: node.mem_limit,
    ),
    Reading(
        _node("rabbitmq_disk_space_available_bytes", "Free disk space of the data directory.", "disk_free"),
        lambda node: node.disk_free,
    ),
    Reading(
        _node(
            "rabbitmq_disk_space_available_limit_bytes",
            "Free disk space below which publishers are blocked.",
            "disk_free_limit",
        ),
        lambda node: node.disk_free_limit,
    ),
    Reading(
        _node("rabbitmq_erlang_processes_used", "Erlang processes in use.", "proc_used"),
        lambda node: node.proc_used,
    ),
    Reading(
        _node("rabbitmq_erlang_processes_limit", "Erlang processes that may exist.", "proc_total"),
        lambda node: node.proc_total,
    ),
    Reading(
        _node("rabbitmq_erlang_scheduler_run_queue", "Erlang processes that wait for a CPU.", "run_queue"),
        lambda node: node.run_queue,
    ),
    Reading(
        _node(
            "rabbitmq_erlang_net_ticktime_seconds",
            "How long a silent peer node counts as alive.",
            "net_ticktime",
        ),
        lambda node: node.net_ticktime,
    ),
    Reading(
        _node("rabbitmq_erlang_uptime_seconds", "Time since the node started.", "uptime"),
        lambda node: node.uptime_seconds,
    ),
    Reading(
        _alarm(
            "rabbitmq_alarms_memory_used_watermark",
            "1 while the memory alarm blocks the publishers of the whole cluster.",
            "mem_alarm",
        ),
        lambda node: _flag(node.mem_alarm),
    ),
    Reading(
        _alarm(
            "rabbitmq_alarms_free_disk_space_watermark",
            "1 while the disk alarm blocks the publishers of the whole cluster.",
            "disk_free_alarm",
        ),
        lambda node: _flag(node.disk_free_alarm),
    ),
)

SPECS = tuple(reading.spec for reading in _READINGS)


def collect(clusters: Sequence[Snapshot], limits: Limits) -> list[Metric]:  # noqa: ARG001  one signature for all
    """Families of all clusters; a node that is down has only what the broker still says of it."""
    families = Families(SPECS)
    for snapshot in clusters:
        for node in snapshot.nodes.value or ():
            labels = {"cluster": snapshot.cluster, "node": node.name}
            for reading in _READINGS:
                families.add(reading.spec, labels, reading.read(node))
    return families.result()


COLLECTOR = Collector(SPECS, collect)
