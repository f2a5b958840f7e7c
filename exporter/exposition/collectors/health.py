"""The broker's own health checks (`/api/health/checks/...`) and the alarms that they report."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import HealthCheck, Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge, only_in, untested_because, untyped

CHECK = gauge(
    "ackscope_health_check",
    "1 if the broker's health check passes, 0 if it fails; no sample if it could not be run.",
    "/api/health/checks/<check>",
    "cluster",
    "check",
)
ANSWERED_AT = gauge(
    "ackscope_health_check_asked_timestamp_seconds",
    "When the broker answered this check, in seconds since 1970. On an idle broker alarms are checked in "
    "every round, passing checks are repeated after 50 s.",
    "/api/health/checks/<check>",
    "cluster",
    "check",
)
ALARM = gauge(
    "ackscope_alarm",
    "1 while a resource alarm of the node (resource: memory, disk) blocks the publishers of the whole "
    "cluster. The health check reports it before the statistics do.",
    "/api/health/checks/alarms alarms",
    "cluster",
    "node",
    "resource",
)
# Untyped, because the official plugin declares it so.
DESCRIPTORS = untested_because(
    only_in(
        untyped(
            "rabbitmq_alarms_file_descriptor_limit",
            "1 while the node is out of file descriptors and accepts no connections.",
            "/api/health/checks/alarms alarms",
            "cluster",
            "node",
        ),
        until=(4, 3),
    ),
    "the lab does not let a broker run out of file descriptors",
)

SPECS = (CHECK, ANSWERED_AT, ALARM, DESCRIPTORS)

_RESOURCES = ("memory", "disk")
_DESCRIPTORS = "file_descriptor_limit"


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    del selection
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        for check in snapshot.health.value or ():
            labels = {"cluster": snapshot.cluster, "check": check.name}
            families.add(CHECK, labels, None if check.ok is None else int(check.ok))
            if check.ok is not None and snapshot.health.at is not None:
                families.add(ANSWERED_AT, labels, snapshot.health.at.wall - (check.age or 0.0))
            if check.name == "alarms" and check.ok is not None:
                _alarms(families, snapshot, check)
    return families.result()


def _alarms(families: MetricFamilies, snapshot: Snapshot, check: HealthCheck) -> None:
    there = {(alarm.node, alarm.resource) for alarm in check.alarms}
    if not check.ok and not there:
        # The check fails without a known alarm, so zeros would be wrong.
        return
    running = [node.name for node in snapshot.nodes.value or () if node.running]
    nodes = dict.fromkeys((*running, *sorted(node for node, _ in there)))
    for node in nodes:
        labels = {"cluster": snapshot.cluster, "node": node}
        others = sorted(resource for where, resource in there if where == node and resource != _DESCRIPTORS)
        for resource in dict.fromkeys((*_RESOURCES, *others)):
            families.add(ALARM, {**labels, "resource": resource}, int((node, resource) in there))
        if snapshot.version is not None and snapshot.version < (4, 3):
            families.add(DESCRIPTORS, labels, int((node, _DESCRIPTORS) in there))


COLLECTOR = Collector(SPECS, collect)
