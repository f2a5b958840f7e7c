"""Limits of virtual hosts and users with their usage (`/api/vhost-limits`, `/api/user-limits`)."""

from collections import Counter
from collections.abc import Iterable, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge

_LABELS = ("cluster", "scope", "name", "limit")

LIMIT = gauge(
    "ackscope_limit",
    "Configured limit (scope: vhost, user; limit: max-connections, max-queues, max-channels). No sample "
    "if none is set.",
    "/api/vhost-limits, /api/user-limits",
    *_LABELS,
)
USED = gauge(
    "ackscope_limit_used",
    "Current number of objects that count towards the limit; at the limit the next one is refused.",
    "/api/connections, /api/channels, /api/queues",
    *_LABELS,
)

SPECS = (LIMIT, USED)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        limits = [limit for limit in selection.of(snapshot.cluster).limits.shown if limit.value >= 0]
        used = _used(snapshot) if limits else {}
        for limit in limits:
            labels = {
                "cluster": snapshot.cluster,
                "scope": limit.scope,
                "name": limit.subject,
                "limit": limit.name,
            }
            families.add(LIMIT, labels, limit.value)
            counted = used.get((limit.scope, limit.name))
            families.add(USED, labels, None if counted is None else counted[limit.subject])
    return families.result()


def _used(snapshot: Snapshot) -> dict[tuple[str, str], Counter[str] | None]:
    """Return the usage of each (scope, limit) by virtual host or user; None if it is not known for all of them."""
    queues, connections, channels = snapshot.queues.value, snapshot.connections.value, snapshot.channels.value
    return {
        ("vhost", "max-queues"): None if queues is None else count(queue.vhost for queue in queues),
        ("vhost", "max-connections"): None if connections is None else count(it.vhost for it in connections),
        ("user", "max-connections"): None if connections is None else count(it.user for it in connections),
        ("user", "max-channels"): None if channels is None else count(channel.user for channel in channels),
    }


def count(names: Iterable[str | None]) -> Counter[str] | None:
    """Count how often each name occurs. Returns None if a name is unknown, because its object may belong to any."""
    counted = Counter(names)
    return None if None in counted else Counter({name: number for name, number in counted.items() if name is not None})


COLLECTOR = Collector(SPECS, collect)
