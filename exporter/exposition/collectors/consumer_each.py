"""Selected consumers, joined with their channel, connection and client (`/api/consumers`)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Channel, Connection, Consumer, Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, MetricReader, Value, gauge, only_in

LABELS = ("cluster", "vhost", "queue", "consumer_tag", "channel")
_API = "/api/consumers"

INFO = gauge(
    "ackscope_consumer_info",
    "Channel, connection, client name, user, address and node of the consumer; always 1.",
    f"{_API} channel_details, /api/connections client_properties.connection_name",
    *LABELS,
    "connection",
    "client_name",
    "user",
    "peer_host",
    "node",
)
UNACKED = gauge(
    "ackscope_consumer_messages_unacked",
    "Unacknowledged messages of the consumer, those its channel fetched with basic.get included; no "
    "sample if its channel has several consumers, because the broker counts by channel.",
    "/api/channels messages_unacknowledged, consumer_count",
    *LABELS,
)

ACTIVITY = gauge(
    "ackscope_consumers",
    "Consumers by activity status (up, single_active, waiting, suspected_down, ...), all consumers included.",
    f"{_API} activity_status",
    "cluster",
    "activity",
)


def _flag(value: bool | None) -> Value:  # noqa: FBT001  converts a flag
    return None if value is None else int(value)


_READERS: tuple[MetricReader[Consumer], ...] = (
    MetricReader(
        gauge(
            "ackscope_consumer_prefetch_messages",
            "Prefetch limit of the consumer; 0 means none of its own.",
            f"{_API} prefetch_count",
            *LABELS,
        ),
        lambda it: it.prefetch_count,
    ),
    MetricReader(
        gauge(
            "ackscope_consumer_acknowledges",
            "1 if the consumer acknowledges manually, 0 with automatic acknowledgement.",
            f"{_API} ack_required",
            *LABELS,
        ),
        lambda it: _flag(it.ack_required),
    ),
    MetricReader(
        gauge(
            "ackscope_consumer_active",
            "1 if the queue delivers to it, 0 if it waits (single active consumer) or is suspected to be down.",
            f"{_API} active",
            *LABELS,
        ),
        lambda it: _flag(it.active),
    ),
    MetricReader(
        only_in(
            gauge(
                "ackscope_consumer_timeout_seconds",
                "Delivery acknowledgement timeout: how long a delivery may stay unacknowledged before the broker "
                "closes the channel.",
                f"{_API} consumer_timeout",
                *LABELS,
            ),
            since=(4, 0),
        ),
        lambda it: None if it.consumer_timeout_ms is None else it.consumer_timeout_ms / 1000,
    ),
)

SPECS = (INFO, *(it.spec for it in _READERS), UNACKED, ACTIVITY)


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        if snapshot.consumers.value is None:
            continue
        activities = Counter(it.activity_status or "unknown" for it in snapshot.consumers.value)
        for activity, number in sorted(activities.items()):
            families.add(ACTIVITY, {"cluster": snapshot.cluster, "activity": activity}, number)
        channels = {it.name: it for it in snapshot.channels.value or ()}
        connections = {it.name: it for it in snapshot.connections.value or ()}
        on_channel = Counter(it.channel_name for it in snapshot.consumers.value)
        for consumer in selection.of(snapshot.cluster).consumers.shown:
            labels = {
                "cluster": snapshot.cluster,
                "vhost": consumer.vhost,
                "queue": consumer.queue,
                "consumer_tag": consumer.tag,
                "channel": consumer.channel_name or "",
            }
            channel = channels.get(consumer.channel_name or "")
            families.add(INFO, {**labels, **_client(consumer, channel, connections)}, 1)
            for reader in _READERS:
                families.add(reader.spec, labels, reader.read(consumer))
            families.add(UNACKED, labels, _unacked(channel, on_channel[consumer.channel_name]))
    return families.result()


def _client(consumer: Consumer, channel: Channel | None, connections: Mapping[str, Connection]) -> dict[str, str]:
    """Return the client of a consumer. Missing values are taken from its channel or connection."""
    name = consumer.connection_name or (channel.connection_name if channel else None) or ""
    connection = connections.get(name)
    sources = (consumer, channel, connection)
    return {
        "connection": name,
        "client_name": (connection.client_name if connection else None) or "",
        "user": next((it.user for it in sources if it is not None and it.user), ""),
        "peer_host": consumer.peer_host or (connection.peer_host if connection else None) or "",
        "node": next((it.node for it in sources if it is not None and it.node), ""),
    }


def _unacked(channel: Channel | None, listed: int) -> Value:
    """Return the unacknowledged messages of the channel, if both lists agree that it has only one consumer."""
    if channel is None or listed != 1 or channel.consumer_count != 1:
        return None
    return channel.messages_unacked


COLLECTOR = Collector(SPECS, collect)
