"""The broker's own health checks (`/api/health/checks/...`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.collectors.contract import Collector, Limits
from exporter.metrics import Families, gauge

CHECK = gauge(
    "ackscope_health_check",
    "1 where the broker's own check passes, 0 where it fails; no sample where it could not be asked.",
    "/api/health/checks/<check>",
    "cluster",
    "check",
)

SPECS = (CHECK,)


def collect(clusters: Sequence[Snapshot], limits: Limits) -> list[Metric]:  # noqa: ARG001  one signature for all
    """Families of all clusters."""
    families = Families(SPECS)
    for snapshot in clusters:
        for check in snapshot.health.value or ():
            labels = {"cluster": snapshot.cluster, "check": check.name}
            families.add(CHECK, labels, None if check.ok is None else int(check.ok))
    return families.result()


COLLECTOR = Collector(SPECS, collect)
