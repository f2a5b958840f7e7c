"""Memory breakdown of each node (`/api/nodes/<node>/memory`).

The official names are those of the plugin's `/metrics/memory-breakdown` (4.0 and later), which calls the same function
as the management API (`rabbit_vm:memory/0`). Here older versions have these metrics too.
"""

from collections.abc import Mapping, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import NodeMemory
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, Spec, gauge, only_in

_LABELS = ("cluster", "node")
_API = "/api/nodes/<node>/memory"


def _part(
    key: str, name: str, text: str, since: tuple[int, int] | None = None, until: tuple[int, int] | None = None
) -> tuple[str, Spec]:
    spec = gauge(f"rabbitmq_memory_{name}_bytes", f"Memory of {text}.", f"{_API} memory.{key}", *_LABELS)
    return key, only_in(spec, since=since, until=until)


PARTS: Mapping[str, Spec] = dict(
    (
        _part("code", "code_module", "loaded code"),
        _part("connection_readers", "client_connection_reader", "the processes that read from connections"),
        _part("connection_writers", "client_connection_writer", "the processes that write to connections"),
        _part("connection_channels", "client_connection_channel", "channels"),
        _part("connection_other", "client_connection_other", "other processes that serve connections"),
        _part("queue_procs", "classic_queue_erlang_process", "classic queue processes"),
        _part("quorum_queue_procs", "quorum_queue_erlang_process", "quorum queue processes"),
        _part("quorum_queue_dlx_procs", "quorum_queue_dlx_erlang_process", "dead-letter workers of quorum queues"),
        _part("stream_queue_procs", "stream_erlang_process", "stream processes"),
        _part(
            "stream_queue_replica_reader_procs",
            "stream_replica_reader_erlang_process",
            "stream replica readers",
        ),
        _part("stream_queue_coordinator_procs", "stream_coordinator_erlang_process", "the stream coordinator"),
        _part("plugins", "plugin", "plugins"),
        _part("metadata_store", "modern_metadata_store", "the metadata store Khepri", since=(3, 13)),
        _part("other_proc", "other_erlang_process", "all other Erlang processes"),
        _part("metrics", "metrics", "metrics tables"),
        _part("mgmt_db", "management_stats_db", "the management statistics database"),
        _part("mnesia", "classic_metadata_store", "the metadata store Mnesia", until=(4, 3)),
        _part("quorum_ets", "quorum_queue_ets_table", "quorum queue tables"),
        _part(
            "metadata_store_ets",
            "modern_metadata_store_ets_table",
            "Khepri tables",
            since=(3, 13),
        ),
        _part("other_ets", "other_ets_table", "all other tables"),
        _part("binary", "binary_heap", "binaries, message bodies included"),
        _part("msg_index", "message_index", "the message store index"),
        _part("atom", "atom_table", "atoms"),
        _part("other_system", "other_system", "the rest of the runtime"),
        _part("allocated_unused", "runtime_allocated_unused", "blocks allocated by the runtime but not in use"),
        _part(
            "reserved_unallocated",
            "runtime_reserved_unallocated",
            "blocks reserved from the system but not allocated by the runtime",
        ),
    )
)
"""Name of a part in the API -> official metric."""

OTHER = only_in(
    gauge(
        "ackscope_memory_part_bytes",
        "Memory of a part without an official metric, such as queue_slave_procs (mirrors).",
        f"{_API} memory",
        *_LABELS,
        "part",
    ),
    until=(4, 0),
)
TOTAL = gauge(
    "ackscope_memory_total_bytes",
    "Total memory of the node by calculation method (by: rss, allocated, erlang).",
    f"{_API} memory.total",
    *_LABELS,
    "by",
)
STRATEGY = gauge(
    "ackscope_memory_strategy_info",
    "Calculation method that the memory alarm uses; always 1.",
    f"{_API} memory.strategy",
    *_LABELS,
    "strategy",
)

SPECS = (*PARTS.values(), OTHER, TOTAL, STRATEGY)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    del selection
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        for memory in snapshot.memory.value or ():
            _one(families, {"cluster": snapshot.cluster, "node": memory.node}, memory)
    return families.result()


def _one(families: MetricFamilies, labels: dict[str, str], memory: NodeMemory) -> None:
    for part, value in memory.parts.items():
        spec = PARTS.get(part)
        if spec is None:
            families.add(OTHER, {**labels, "part": part}, value)
        else:
            families.add(spec, labels, value)
    for by, total in (("rss", memory.rss), ("allocated", memory.allocated), ("erlang", memory.erlang)):
        families.add(TOTAL, {**labels, "by": by}, total)
    if memory.strategy is not None:
        families.add(STRATEGY, {**labels, "strategy": memory.strategy}, 1)


COLLECTOR = Collector(SPECS, collect)
