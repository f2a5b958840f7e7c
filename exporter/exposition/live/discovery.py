"""Metrics of the discovery of clusters."""

from prometheus_client.core import Metric

from exporter.discovery.kubernetes import DiscoveryStatus
from exporter.exposition.specs import MetricFamilies, counter, gauge, untested_because

_SOURCE = "discovery"
_KUBERNETES = "needs a Kubernetes API, as in tests/integration/exporter/test_discovery.py"

SUCCESS = untested_because(
    gauge(
        "ackscope_discovery_success",
        "Whether the last requests for objects succeeded; if not, the clusters that were found before stay.",
        _SOURCE,
    ),
    _KUBERNETES,
)
AGE = untested_because(
    gauge(
        "ackscope_discovery_age_seconds",
        "Time since the Kubernetes API last answered a request for objects; no sample before.",
        _SOURCE,
    ),
    _KUBERNETES,
)
FAILURES = untested_because(
    counter(
        "ackscope_discovery_failures_total", "Failed requests to the Kubernetes API, for objects or secrets.", _SOURCE
    ),
    _KUBERNETES,
)
OBJECT = untested_because(
    gauge(
        "ackscope_discovered_object",
        "1 for each discovered object; `reason` is why it is not watched, and empty if it is.",
        _SOURCE,
        "cluster",
        "namespace",
        "object",
        "reason",
    ),
    _KUBERNETES,
)

SPECS = (SUCCESS, AGE, FAILURES, OBJECT)


def collect(status: DiscoveryStatus) -> list[Metric]:
    """Metric families; none without discovery."""
    families = MetricFamilies(SPECS)
    if status.enabled:
        families.add(SUCCESS, {}, int(status.error is None and status.age is not None))
        families.add(AGE, {}, status.age)
        families.add(FAILURES, {}, status.failures)
    for it in status.objects:
        labels = {"cluster": it.cluster, "namespace": it.namespace, "object": it.name, "reason": it.reason or ""}
        families.add(OBJECT, labels, 1)
    return families.result()
