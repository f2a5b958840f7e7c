"""Authentication attempts by node and protocol (`/api/auth/attempts/<node>`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import AuthAttempts
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec, counter

_LABELS = ("cluster", "node", "protocol")
_API = "/api/auth/attempts/<node>"


def _counter(name: str, text: str, field: str) -> Spec:
    return counter(f"rabbitmq_auth_{name}_total", text, f"{_API} {field}", *_LABELS)


_READERS: tuple[MetricReader[AuthAttempts], ...] = (
    MetricReader(
        _counter("attempts", "Authentication attempts since the node started.", "auth_attempts"),
        lambda it: it.total,
    ),
    MetricReader(
        _counter("attempts_succeeded", "Authentication attempts that succeeded.", "auth_attempts_succeeded"),
        lambda it: it.succeeded,
    ),
    MetricReader(
        _counter("attempts_failed", "Authentication attempts that failed.", "auth_attempts_failed"),
        lambda it: it.failed,
    ),
)

SPECS = tuple(reader.spec for reader in _READERS)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    del selection
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        for attempts in snapshot.auth.value or ():
            labels = {"cluster": snapshot.cluster, "node": attempts.node, "protocol": attempts.protocol}
            for reader in _READERS:
                families.add(reader.spec, labels, reader.read(attempts))
    return families.result()


COLLECTOR = Collector(SPECS, collect)
