"""Feature flags and deprecated features (`/api/feature-flags`, `/api/deprecated-features`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge, only_in

FLAG = gauge(
    "ackscope_feature_flag_enabled",
    "1 if the feature flag is enabled; all stable flags must be enabled before an upgrade to the next version.",
    "/api/feature-flags state, stability",
    "cluster",
    "feature",
    "stability",
)
IN_USE = only_in(
    gauge(
        "ackscope_deprecated_feature_in_use",
        "1 if a deprecated feature is in use; a later version removes it (phase: how soon).",
        "/api/deprecated-features/used",
        "cluster",
        "feature",
        "phase",
    ),
    since=(3, 13),
)
PERMITTED = only_in(
    gauge(
        "ackscope_deprecated_feature_permitted",
        "1 if the deprecated feature is still permitted.",
        "/api/deprecated-features state",
        "cluster",
        "feature",
        "phase",
    ),
    since=(3, 13),
)

SPECS = (FLAG, IN_USE, PERMITTED)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        for feature in selection.of(snapshot.cluster).features.shown:
            if feature.deprecated:
                labels = {"cluster": snapshot.cluster, "feature": feature.name, "phase": feature.stage or ""}
                families.add(IN_USE, labels, None if feature.in_use is None else int(feature.in_use))
                if feature.state is not None:
                    families.add(PERMITTED, labels, int(feature.state == "permitted"))
            elif feature.state is not None:
                labels = {"cluster": snapshot.cluster, "feature": feature.name, "stability": feature.stage or ""}
                families.add(FLAG, labels, int(feature.state == "enabled"))
    return families.result()


COLLECTOR = Collector(SPECS, collect)
