"""Expiry of listener certificates (health check `certificate-expiration`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge, untested_because

EXPIRES = untested_because(
    gauge(
        "ackscope_certificate_expiry_timestamp_seconds",
        "Expiry of the certificate of a TLS listener on the node that answered, in seconds since 1970; of a "
        "chain, the earliest expiry.",
        "/api/health/checks/certificate-expiration",
        "cluster",
        "node",
        "protocol",
        "port",
    ),
    "the lab's listeners have no TLS, and the date changes only with a new certificate",
)

SPECS = (EXPIRES,)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    del selection
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        # A listener may present a chain: the certificate that expires first counts.
        first: dict[tuple[str, str, str], float] = {}
        for check in snapshot.health.value or ():
            for it in check.certificates:
                key = (it.node, it.protocol, "" if it.port is None else str(it.port))
                first[key] = min(it.expires, first.get(key, it.expires))
        for (node, protocol, port), expires in first.items():
            labels = {"cluster": snapshot.cluster, "node": node, "protocol": protocol, "port": port}
            families.add(EXPIRES, labels, expires)
    return families.result()


COLLECTOR = Collector(SPECS, collect)
