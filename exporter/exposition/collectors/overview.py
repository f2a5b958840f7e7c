"""Cluster-wide totals, churn, message counters and identity (`/api/overview`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Overview, Snapshot
from exporter.exposition.cardinality.selection import QueueTotals, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, MetricReader, counter, gauge, untested_because, untyped

_API = "/api/overview"

# Both are untyped, because the official plugin declares them so.
BUILD = untyped(
    "rabbitmq_build_info",
    "Versions of RabbitMQ and Erlang; always 1. The plugin's own versions are left out: it may not be installed.",
    f"{_API} rabbitmq_version, erlang_version",
    "cluster",
    "rabbitmq_version",
    "erlang_version",
)
IDENTITY = untyped(
    "rabbitmq_identity_info",
    "Cluster name, and the node if there is only one; always 1. One series per cluster, for dashboards "
    'to join on. rabbitmq_endpoint is always "aggregated", because sums over these series equal those of '
    "that endpoint.",
    f"{_API} cluster_name, /api/nodes name",
    "cluster",
    "rabbitmq_node",
    "rabbitmq_cluster",
    "rabbitmq_endpoint",
)
PUBLISHERS = gauge(
    "rabbitmq_global_publishers",
    "Open channels that have published, all protocols together. No sample if rates_mode is none.",
    "/api/channels message_stats.publish",
    "cluster",
)
ROUTED = counter(
    "rabbitmq_global_messages_routed_total",
    "Messages routed to queues and streams, once per queue, since the exporter started; as old as the "
    "queue statistics. All protocols together.",
    "/api/queues message_stats.publish",
    "cluster",
)

_TOTALS: tuple[MetricReader[Overview], ...] = (
    MetricReader(
        gauge("rabbitmq_connections", "Open connections.", f"{_API} object_totals.connections", "cluster"),
        lambda it: it.connections,
    ),
    MetricReader(
        gauge("rabbitmq_channels", "Open channels.", f"{_API} object_totals.channels", "cluster"),
        lambda it: it.channels,
    ),
    MetricReader(
        gauge("rabbitmq_consumers", "Consumers.", f"{_API} object_totals.consumers", "cluster"),
        lambda it: it.consumers,
    ),
    MetricReader(
        gauge("rabbitmq_queues", "Queues and streams.", f"{_API} object_totals.queues", "cluster"),
        lambda it: it.queues,
    ),
    MetricReader(
        gauge(
            "rabbitmq_global_consumers",
            "Consumers, all protocols together.",
            f"{_API} object_totals.consumers",
            "cluster",
        ),
        lambda it: it.consumers,
    ),
    MetricReader(
        untested_because(
            gauge(
                "ackscope_cluster_clock_offset_seconds",
                "How far the clock of the node that answers is ahead of ours; 0 within 2 s.",
                f"{_API} header Date",
                "cluster",
            ),
            "needs hosts whose clocks differ, as in tests/integration/exporter/test_clock_skew.py",
        ),
        lambda it: it.clock_offset,
    ),
    MetricReader(
        gauge("ackscope_cluster_exchanges", "Exchanges.", f"{_API} object_totals.exchanges", "cluster"),
        lambda it: it.exchanges,
    ),
    MetricReader(
        gauge(
            "ackscope_cluster_messages",
            "Messages in all queues, as the broker sums them up.",
            f"{_API} queue_totals.messages",
            "cluster",
        ),
        lambda it: it.messages,
    ),
    MetricReader(
        gauge(
            "ackscope_cluster_messages_ready",
            "Ready messages in all queues, as the broker sums them up.",
            f"{_API} queue_totals.messages_ready",
            "cluster",
        ),
        lambda it: it.messages_ready,
    ),
    MetricReader(
        gauge(
            "ackscope_cluster_messages_unacked",
            "Unacknowledged messages in all queues, as the broker sums them up.",
            f"{_API} queue_totals.messages_unacknowledged",
            "cluster",
        ),
        lambda it: it.messages_unacked,
    ),
)

# suffix and meaning of the official counter, field of message_stats with the same meaning
_MESSAGES = (
    ("received", "received from publishers", "publish"),
    ("confirmed", "confirmed to publishers", "confirm"),
    ("unroutable_returned", "published as mandatory and returned as unroutable", "return_unroutable"),
    ("unroutable_dropped", "published as non-mandatory and dropped as unroutable", "drop_unroutable"),
    ("delivered", "delivered to consumers or fetched with basic.get", "deliver_get"),
    ("delivered_consume_manual_ack", "delivered to consumers with manual acknowledgement", "deliver"),
    ("delivered_consume_auto_ack", "delivered to consumers with automatic acknowledgement", "deliver_no_ack"),
    ("delivered_get_manual_ack", "fetched with basic.get, manual acknowledgement", "get"),
    ("delivered_get_auto_ack", "fetched with basic.get, automatic acknowledgement", "get_no_ack"),
    ("get_empty", "requested with basic.get from an empty queue", "get_empty"),
    ("redelivered", "redelivered", "redeliver"),
    ("acknowledged", "acknowledged by consumers", "ack"),
)
_GLOBAL = tuple(
    (
        counter(
            f"rabbitmq_global_messages_{name}_total",
            f"Messages {words}, all protocols and queue types together.",
            f"{_API} message_stats.{field}",
            "cluster",
        ),
        field,
    )
    for name, words, field in _MESSAGES
)

_CHURN = tuple(
    (
        counter(
            f"rabbitmq_{name}_total",
            f"{name.replace('_', ' ').capitalize()} since the nodes started.",
            f"{_API} churn_rates.{key}",
            "cluster",
        ),
        key,
    )
    for name, key in (
        ("connections_opened", "connection_created"),
        ("connections_closed", "connection_closed"),
        ("channels_opened", "channel_created"),
        ("channels_closed", "channel_closed"),
        ("queues_declared", "queue_declared"),
        ("queues_created", "queue_created"),
        ("queues_deleted", "queue_deleted"),
    )
)

_DISK = tuple(
    (
        counter(
            f"ackscope_cluster_disk_{name}_total",
            f"Disk operations: classic queues {words} disk.",
            f"{_API} message_stats.{field}",
            "cluster",
        ),
        field,
    )
    for name, words, field in (("reads", "read from", "disk_reads"), ("writes", "wrote to", "disk_writes"))
)

SPECS = (
    BUILD,
    IDENTITY,
    PUBLISHERS,
    ROUTED,
    *(reader.spec for reader in _TOTALS),
    *(spec for spec, _ in _GLOBAL),
    *(spec for spec, _ in _CHURN),
    *(spec for spec, _ in _DISK),
)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        overview = snapshot.overview.value
        if overview is None:
            continue
        labels = {"cluster": snapshot.cluster}
        _identify(families, snapshot, overview)
        for reader in _TOTALS:
            families.add(reader.spec, labels, reader.read(overview))
        for spec, field in _GLOBAL:
            families.add(spec, labels, getattr(overview.stats, field))
        for spec, key in _CHURN:
            families.add(spec, labels, overview.churn.get(key))
        for spec, field in _DISK:
            families.add(spec, labels, getattr(overview, field))
        families.add(PUBLISHERS, labels, _publishers(snapshot, overview))
        families.add(ROUTED, labels, _routed(selection.of(snapshot.cluster).totals))
    return families.result()


def _identify(families: MetricFamilies, snapshot: Snapshot, overview: Overview) -> None:
    if overview.rabbitmq_version is not None:
        versions = {
            "rabbitmq_version": overview.rabbitmq_version,
            "erlang_version": overview.erlang_version or "",
        }
        families.add(BUILD, {"cluster": snapshot.cluster, **versions}, 1)
    if overview.cluster_name is not None:
        nodes = snapshot.nodes.value or ()
        # Dashboards join on this series: a second one per cluster would break every join.
        node = nodes[0].name if len(nodes) == 1 else ""
        labels = {
            "cluster": snapshot.cluster,
            "rabbitmq_node": node,
            "rabbitmq_cluster": overview.cluster_name,
            "rabbitmq_endpoint": "aggregated",
        }
        families.add(IDENTITY, labels, 1)


def _publishers(snapshot: Snapshot, overview: Overview) -> int | None:
    """Return the number of publishing channels; None if unknown. Without rates they cannot be identified."""
    if snapshot.channels.value is None or overview.rates_mode == "none" or overview.statistics is False:
        return None
    return sum(channel.stats.publish is not None for channel in snapshot.channels.value)


def _routed(totals: QueueTotals) -> float | None:
    counted = [counts["stats.publish"] for counts in totals.counts.values() if "stats.publish" in counts]
    return sum(counted) if counted else None


COLLECTOR = Collector(SPECS, collect)
