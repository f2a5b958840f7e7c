"""What is known of the past: how far the pipeline is behind, and how many bands tell what is usual."""

from prometheus_client.core import Metric

from ackscope.clock import Instant
from exporter.exposition.specs import MetricFamilies, gauge, untested_because
from exporter.history.baseline_cache import BaselineCacheStats

_PAST = "`ackscope pipeline` makes what it tells of, and bands take days"

LAG = untested_because(
    gauge(
        "ackscope_pipeline_lag_seconds",
        "Age of the oldest landed row that is not rolled up, as `ackscope pipeline stream` said last, plus the time "
        "since it said so: it grows while the pipeline is away.",
        "history.rollups",
    ),
    _PAST,
)
AGE = untested_because(
    gauge(
        "ackscope_baseline_age_seconds",
        "Time since the end of the history that the bands of this hour were made of.",
        "history.rollups",
        "cluster",
    ),
    _PAST,
)
BANDS = untested_because(
    gauge(
        "ackscope_baseline_bands",
        "Measures of objects of which it is known what is usual at this hour of the week (hour-of-week), or of the day "
        "(hour-of-day), and of which it is not yet (not-yet).",
        "history.rollups",
        "cluster",
        "scope",
    ),
    _PAST,
)

SPECS = (LAG, AGE, BANDS)


def collect(counts: BaselineCacheStats, now: Instant) -> list[Metric]:
    """Families; none where there are no rollups."""
    families = MetricFamilies(SPECS)
    if counts.lag is not None:
        families.add(LAG, {}, counts.lag.at(now.wall))
    for cluster, known in counts.clusters.items():
        made_at = known.baselines.made_at
        families.add(AGE, {"cluster": cluster}, None if made_at is None else now.wall - made_at)
        for scope, number in sorted(known.scopes.items()):
            families.add(BANDS, {"cluster": cluster, "scope": scope}, number)
    return families.result()
