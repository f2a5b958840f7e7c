"""Virtual hosts: state, contents and traffic (`/api/vhosts`).

`ackscope_vhost_queues` and `ackscope_vhost_connections` are counted here, to compare them with the limits.
"""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import VHost
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.collectors.limits import count
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec, counter, gauge, only_in

_LABELS = ("cluster", "vhost")
_API = "/api/vhosts"

STATUS = gauge(
    "rabbitmq_cluster_vhost_status",
    "1 if the virtual host is running on the node, 0 if not: its queues there are unavailable.",
    f"{_API} cluster_state",
    *_LABELS,
    "node",
)
INFO = gauge(
    "ackscope_vhost_info",
    'Queue type used if a declaration names none (default_queue_type, "" if the version does not report it); always 1.',
    f"{_API} default_queue_type",
    *_LABELS,
    "default_queue_type",
)
TRACING = gauge(
    "ackscope_vhost_tracing",
    "1 while the firehose tracer copies every message of the virtual host, which costs throughput.",
    f"{_API} tracing",
    *_LABELS,
)
PROTECTED = only_in(
    gauge(
        "ackscope_vhost_protected_from_deletion",
        "1 if the virtual host is protected from deletion.",
        f"{_API} protected_from_deletion",
        *_LABELS,
    ),
    # rabbitmq-server#13017, release notes of 4.0.6; observed: absent in 4.0.5, present in 4.3.6.
    since=(4, 0, 6),
)
QUEUES = gauge(
    "ackscope_vhost_queues",
    "Queues and streams visible to the monitoring user.",
    "/api/queues vhost",
    *_LABELS,
)
CONNECTIONS = gauge(
    "ackscope_vhost_connections",
    "Connections; no sample while any connection of the cluster does not report its virtual host.",
    "/api/connections vhost",
    *_LABELS,
)


def _gauge(name: str, text: str, field: str) -> Spec:
    return gauge(f"ackscope_vhost_{name}", text, f"{_API} {field}", *_LABELS)


def _counter(name: str, text: str, field: str) -> Spec:
    return counter(f"ackscope_vhost_{name}_total", text, f"{_API} {field}", *_LABELS)


_READERS: tuple[MetricReader[VHost], ...] = (
    MetricReader(
        _gauge("messages", "Messages in its queues, as the broker sums them up.", "messages"), lambda it: it.messages
    ),
    MetricReader(
        _gauge("messages_ready", "Ready messages in its queues, as the broker sums them up.", "messages_ready"),
        lambda it: it.messages_ready,
    ),
    MetricReader(
        _gauge(
            "messages_unacked",
            "Unacknowledged messages in its queues, as the broker sums them up.",
            "messages_unacknowledged",
        ),
        lambda it: it.messages_unacked,
    ),
    MetricReader(_counter("received_bytes", "Bytes received from its clients.", "recv_oct"), lambda it: it.recv_oct),
    MetricReader(_counter("sent_bytes", "Bytes sent to its clients.", "send_oct"), lambda it: it.send_oct),
)

_STATS = tuple(
    (_counter(f"messages_{name}", f"Messages {words}.", f"message_stats.{field}"), field)
    for name, words, field in (
        ("published", "received from publishers", "publish"),
        ("confirmed", "confirmed to publishers", "confirm"),
        ("unroutable_returned", "published as mandatory and returned as unroutable", "return_unroutable"),
        ("unroutable_dropped", "published as non-mandatory and dropped as unroutable", "drop_unroutable"),
        ("delivered_ack", "delivered to consumers with manual acknowledgement", "deliver"),
        ("delivered", "delivered to consumers with automatic acknowledgement", "deliver_no_ack"),
        ("get_ack", "fetched with basic.get, manual acknowledgement", "get"),
        ("get", "fetched with basic.get, automatic acknowledgement", "get_no_ack"),
        ("redelivered", "redelivered", "redeliver"),
        ("acked", "acknowledged by consumers", "ack"),
    )
)

SPECS = (
    STATUS,
    INFO,
    TRACING,
    PROTECTED,
    QUEUES,
    CONNECTIONS,
    *(reader.spec for reader in _READERS),
    *(spec for spec, _ in _STATS),
)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        vhosts = selection.of(snapshot.cluster).vhosts.shown
        if not vhosts:
            continue
        queues, connections = snapshot.queues.value, snapshot.connections.value
        queued = None if queues is None else count(queue.vhost for queue in queues)
        connected = None if connections is None else count(connection.vhost for connection in connections)
        for vhost in vhosts:
            _one(families, snapshot.cluster, vhost)
            labels = {"cluster": snapshot.cluster, "vhost": vhost.name}
            families.add(QUEUES, labels, None if queued is None else queued[vhost.name])
            families.add(CONNECTIONS, labels, None if connected is None else connected[vhost.name])
    return families.result()


def _one(families: MetricFamilies, cluster: str, vhost: VHost) -> None:
    labels = {"cluster": cluster, "vhost": vhost.name}
    for node, state in vhost.cluster_state.items():
        families.add(STATUS, {**labels, "node": node}, int(state == "running"))
    families.add(INFO, {**labels, "default_queue_type": vhost.default_queue_type or ""}, 1)
    families.add(TRACING, labels, None if vhost.tracing is None else int(vhost.tracing))
    protected = vhost.protected_from_deletion
    families.add(PROTECTED, labels, None if protected is None else int(protected))
    for reader in _READERS:
        families.add(reader.spec, labels, reader.read(vhost))
    for spec, field in _STATS:
        families.add(spec, labels, getattr(vhost.stats, field))


COLLECTOR = Collector(SPECS, collect)
