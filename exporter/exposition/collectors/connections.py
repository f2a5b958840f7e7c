"""Selected connections, the remainder, and states over all connections (`/api/connections`).

The official plugin labels a connection by its Erlang process, in the label `channel`. Here the label `connection` is
the name of the connection.
"""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Connection, Snapshot
from exporter.exposition.cardinality.emit import FieldMetric, LabelScheme, emit
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec, counter, gauge

LABELS = ("cluster", "vhost", "user", "connection")
_API = "/api/connections"


def _count(name: str, text: str, field: str) -> Spec:
    return counter(name, text, f"{_API} {field}", *LABELS)


STATES = gauge(
    "ackscope_connections",
    'Connections by state, all connections included; "blocked" and "blocking" are publishers stopped by an alarm.',
    f"{_API} state",
    "cluster",
    "state",
)
INFO = gauge(
    "ackscope_connection_info",
    "Client, address and node of the connection; client_name is the name that the application gave itself; always 1.",
    f"{_API} client_properties, peer_host, node, protocol",
    *LABELS,
    "client_name",
    "client_product",
    "peer_host",
    "node",
    "protocol",
)

_FIELD_METRICS = (
    FieldMetric(gauge("rabbitmq_connection_channels", "Channels.", f"{_API} channels", *LABELS), "channels"),
    FieldMetric(
        gauge(
            "rabbitmq_connection_pending_packets",
            "Bytes queued to be sent to the client (send_pend); the official name calls them packets.",
            f"{_API} send_pend",
            *LABELS,
        ),
        "send_pend",
    ),
    FieldMetric(_count("rabbitmq_connection_incoming_bytes_total", "Bytes received.", "recv_oct"), "recv_oct"),
    FieldMetric(_count("rabbitmq_connection_outgoing_bytes_total", "Bytes sent.", "send_oct"), "send_oct"),
    FieldMetric(_count("rabbitmq_connection_incoming_packets_total", "Packets received.", "recv_cnt"), "recv_cnt"),
    FieldMetric(_count("rabbitmq_connection_outgoing_packets_total", "Packets sent.", "send_cnt"), "send_cnt"),
    FieldMetric(
        _count(
            "rabbitmq_connection_process_reductions_total",
            "Erlang reductions (CPU work) of the connection's process.",
            "reductions",
        ),
        "reductions",
    ),
)
_READERS: tuple[MetricReader[Connection], ...] = (
    MetricReader(
        gauge(
            "ackscope_connection_blocked",
            "1 while an alarm blocks its publishing (blocked), or would block it if it published (blocking).",
            f"{_API} state",
            *LABELS,
        ),
        lambda it: None if it.state is None else int(it.state in ("blocked", "blocking")),
    ),
    MetricReader(
        gauge(
            "ackscope_connection_connected_timestamp_seconds",
            "When the connection was opened, in seconds since 1970.",
            f"{_API} connected_at",
            *LABELS,
        ),
        lambda it: it.connected_at,
    ),
)

SPECS = (STATES, INFO, *(it.spec for it in _FIELD_METRICS), *(it.spec for it in _READERS))

_ALWAYS = ("running", "blocking", "blocked", "flow")
"""States reported even at 0: alert rules compare them with 0."""


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        connections = snapshot.connections.value
        if connections is None:
            continue
        states = Counter(connection.state or "unknown" for connection in connections)
        for state in dict.fromkeys((*_ALWAYS, *sorted(states))):
            families.add(STATES, {"cluster": snapshot.cluster, "state": state}, states[state])
        selected, naming = selection.of(snapshot.cluster).connections, _naming(snapshot.cluster)
        emit(families, selected, naming, _FIELD_METRICS, _READERS)
        for connection in selected.shown:
            what = {
                "client_name": connection.client_name or "",
                "client_product": connection.client_product or "",
                "peer_host": connection.peer_host or "",
                "node": connection.node or "",
                "protocol": connection.protocol or "",
            }
            families.add(INFO, {**naming.labels(connection), **what}, 1)
    return families.result()


def _naming(cluster: str) -> LabelScheme[Connection]:
    return LabelScheme(
        key=lambda connection: connection.name,
        labels=lambda connection: {
            "cluster": cluster,
            "vhost": connection.vhost or "",
            "user": connection.user or "",
            "connection": connection.name,
        },
        other={"cluster": cluster, "vhost": "", "user": "", "connection": OTHER},
    )


COLLECTOR = Collector(SPECS, collect)
