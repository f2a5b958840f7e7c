"""Metrics of the history: lag of the pipeline and number of baselines."""

from prometheus_client.core import Metric

from ackscope.clock import Instant
from exporter.exposition.specs import MetricFamilies, gauge, untested_because
from exporter.history.baseline_cache import BaselineCacheStats

_PAST = "`ackscope pipeline` produces the data, and baselines take days"

LAG = untested_because(
    gauge(
        "ackscope_pipeline_lag_seconds",
        "Age of the oldest landed row that is not rolled up yet, as last reported by `ackscope pipeline "
        "stream`, plus the time since that report: it grows while the pipeline is down.",
        "history.rollups",
    ),
    _PAST,
)
AGE = untested_because(
    gauge(
        "ackscope_baseline_age_seconds",
        "Time since the end of the history that the baselines of the current hour were computed from.",
        "history.rollups",
        "cluster",
    ),
    _PAST,
)
BANDS = untested_because(
    gauge(
        "ackscope_baseline_bands",
        "Baselines for the current hour: by hour of the week (hour-of-week), by hour of the day "
        "(hour-of-day), or not available yet (not-yet).",
        "history.rollups",
        "cluster",
        "scope",
    ),
    _PAST,
)

SPECS = (LAG, AGE, BANDS)


def collect(counts: BaselineCacheStats, now: Instant) -> list[Metric]:
    """Metric families; none without rollups."""
    families = MetricFamilies(SPECS)
    if counts.lag is not None:
        families.add(LAG, {}, counts.lag.at(now.wall))
    for cluster, known in counts.clusters.items():
        made_at = known.baselines.made_at
        families.add(AGE, {"cluster": cluster}, None if made_at is None else now.wall - made_at)
        for scope, number in sorted(known.scopes.items()):
            families.add(BANDS, {"cluster": cluster, "scope": scope}, number)
    return families.result()
