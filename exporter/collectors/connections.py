"""The connections, over all of a cluster (`/api/connections`): states, channels, bytes that wait to be sent."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.collectors.contract import Collector, Limits
from exporter.metrics import Families, gauge, whole_sum

STATES = gauge(
    "ackscope_connections",
    'Connections by state; "blocked" and "blocking" are publishers that an alarm stops.',
    "/api/connections state",
    "cluster",
    "state",
)
CHANNELS = gauge(
    "rabbitmq_connection_channels",
    "Channels, over all connections; withheld when one did not say.",
    "/api/connections channels",
    "cluster",
)
PENDING = gauge(
    "rabbitmq_connection_pending_packets",
    "Packets that wait to be sent, over all connections; withheld when one did not say.",
    "/api/connections send_pend",
    "cluster",
)

SPECS = (STATES, CHANNELS, PENDING)

_ALWAYS = ("running", "blocking", "blocked", "flow")
"""States that are counted even when there is none: rules compare them with 0."""


def collect(clusters: Sequence[Snapshot], limits: Limits) -> list[Metric]:  # noqa: ARG001  one signature for all
    """Families of all clusters."""
    families = Families(SPECS)
    for snapshot in clusters:
        connections = snapshot.connections.value
        if connections is None:
            continue
        states = Counter(connection.state or "unknown" for connection in connections)
        for state in dict.fromkeys((*_ALWAYS, *sorted(states))):
            families.add(STATES, {"cluster": snapshot.cluster, "state": state}, states[state])
        labels = {"cluster": snapshot.cluster}
        families.add(CHANNELS, labels, whole_sum(connection.channels for connection in connections))
        families.add(PENDING, labels, whole_sum(connection.send_pend for connection in connections))
    return families.result()


COLLECTOR = Collector(SPECS, collect)
