"""Selected channels and the remainder (`/api/channels`).

The official plugin labels a channel by its Erlang process. The labels here are name, connection, user and virtual
host. Aggregated counters of the plugin fall when a channel closes; counters of the remainder here never fall.
"""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Channel, Snapshot
from exporter.exposition.cardinality.emit import FieldMetric, LabelScheme, emit
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec, counter, gauge, only_in

LABELS = ("cluster", "vhost", "user", "connection", "channel")
_API = "/api/channels"


def _gauge(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"{_API} {field}", *LABELS)


def _count(name: str, text: str, field: str) -> Spec:
    return counter(name, text, f"{_API} {field}", *LABELS)


_FIELD_METRICS = (
    FieldMetric(_gauge("rabbitmq_channel_consumers", "Consumers.", "consumer_count"), "consumer_count"),
    FieldMetric(
        _gauge(
            "rabbitmq_channel_messages_unacked",
            "Messages delivered but not yet acknowledged.",
            "messages_unacknowledged",
        ),
        "messages_unacked",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_channel_messages_unconfirmed", "Messages published but not yet confirmed.", "messages_unconfirmed"
        ),
        "messages_unconfirmed",
    ),
    FieldMetric(
        _gauge(
            "rabbitmq_channel_messages_uncommitted",
            "Messages published in an open transaction.",
            "messages_uncommitted",
        ),
        "messages_uncommitted",
    ),
    FieldMetric(
        _gauge("rabbitmq_channel_acks_uncommitted", "Acknowledgements in an open transaction.", "acks_uncommitted"),
        "acks_uncommitted",
    ),
    FieldMetric(
        _gauge(
            "ackscope_channel_pending_raft_commands",
            "Raft commands to quorum queues that are not yet answered.",
            "pending_raft_commands",
        ),
        "pending_raft_commands",
    ),
    *(
        FieldMetric(_count(f"rabbitmq_channel_{name}_total", text, f"message_stats.{field}"), f"stats.{field}")
        for name, text, field in (
            ("messages_published", "Messages published.", "publish"),
            ("messages_confirmed", "Messages confirmed to the publisher.", "confirm"),
            ("messages_unroutable_returned", "Mandatory messages returned as unroutable.", "return_unroutable"),
            ("messages_unroutable_dropped", "Messages dropped as unroutable.", "drop_unroutable"),
            ("messages_delivered_ack", "Messages delivered to consumers with manual acknowledgement.", "deliver"),
            ("messages_delivered", "Messages delivered to consumers with automatic acknowledgement.", "deliver_no_ack"),
            ("messages_redelivered", "Messages redelivered.", "redeliver"),
            ("messages_acked", "Messages acknowledged.", "ack"),
            ("get_ack", "Messages fetched with basic.get, manual acknowledgement.", "get"),
            ("get", "Messages fetched with basic.get, automatic acknowledgement.", "get_no_ack"),
            ("get_empty", "basic.get calls on an empty queue.", "get_empty"),
        )
    ),
    FieldMetric(
        _count(
            "rabbitmq_channel_process_reductions_total",
            "Erlang reductions (CPU work) of the channel's process.",
            "reductions",
        ),
        "reductions",
    ),
)
_READERS: tuple[MetricReader[Channel], ...] = (
    MetricReader(
        _gauge("rabbitmq_consumer_prefetch", "Prefetch limit for new consumers; 0 means unlimited.", "prefetch_count"),
        lambda it: it.prefetch_count,
    ),
    MetricReader(
        only_in(
            _gauge(
                "rabbitmq_channel_prefetch",
                "Prefetch limit shared by all consumers of the channel; 0 means unlimited.",
                "global_prefetch_count",
            ),
            until=(4, 0),
        ),
        lambda it: it.global_prefetch_count,
    ),
)
MODES = gauge(
    "ackscope_channels",
    "Channels by mode (confirm, transaction, plain), all channels included; a channel of unknown mode is not counted.",
    f"{_API} confirm, transactional",
    "cluster",
    "mode",
)
INFO = gauge(
    "ackscope_channel_info",
    "Node and publishing mode (confirm, transaction, plain) of the channel; always 1.",
    f"{_API} node, confirm, transactional",
    *LABELS,
    "node",
    "mode",
)

SPECS = (*(it.spec for it in _FIELD_METRICS), *(it.spec for it in _READERS), INFO, MODES)


def mode(channel: Channel) -> str | None:
    """Publishing mode: confirm, transaction or plain; None if unknown."""
    if channel.confirm:
        return "confirm"
    if channel.transactional:
        return "transaction"
    return None if channel.confirm is None or channel.transactional is None else "plain"


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        channels = snapshot.channels.value
        if channels is None:
            continue
        selected, naming = selection.of(snapshot.cluster).channels, _naming(snapshot.cluster)
        emit(families, selected, naming, _FIELD_METRICS, _READERS)
        for channel in selected.shown:
            what = {"node": channel.node or "", "mode": mode(channel) or ""}
            families.add(INFO, {**naming.labels(channel), **what}, 1)
        modes = Counter(mode(channel) for channel in channels)
        for name in ("confirm", "transaction", "plain"):
            families.add(MODES, {"cluster": snapshot.cluster, "mode": name}, modes[name])
    return families.result()


def _naming(cluster: str) -> LabelScheme[Channel]:
    return LabelScheme(
        key=lambda channel: channel.name,
        labels=lambda channel: {
            "cluster": cluster,
            "vhost": channel.vhost or "",
            "user": channel.user or "",
            "connection": channel.connection_name or "",
            "channel": channel.name,
        },
        other={"cluster": cluster, "vhost": "", "user": "", "connection": "", "channel": OTHER},
    )


COLLECTOR = Collector(SPECS, collect)
