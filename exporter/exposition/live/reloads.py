"""Metrics of configuration reloads, named like those of Prometheus."""

from typing import NamedTuple

from prometheus_client.core import Metric

from exporter.exposition.specs import MetricFamilies, counter, gauge

SUCCESSFUL = gauge(
    "ackscope_config_last_reload_successful",
    "Whether the last reload succeeded; if not, the previous settings stay in force.",
    "exporter",
)
AT = gauge(
    "ackscope_config_last_reload_success_timestamp_seconds",
    "When the settings in force were loaded, in seconds since 1970.",
    "exporter",
)
RELOADS = counter("ackscope_config_reloads_total", "Reloads since startup.", "exporter", "result")

SPECS = (SUCCESSFUL, AT, RELOADS)


class ReloadStatus(NamedTuple):
    """Results of configuration reloads.

    Attributes:
        successful: whether the last reload succeeded.
        at: wall-clock time of the last successful reload.
        successes: successful reloads, startup not included.
        failures: rejected reloads.
    """

    successful: bool
    at: float
    successes: int = 0
    failures: int = 0


def collect(status: ReloadStatus) -> list[Metric]:
    """Metric families of the reloads."""
    families = MetricFamilies(SPECS)
    families.add(SUCCESSFUL, {}, int(status.successful))
    families.add(AT, {}, status.at)
    families.add(RELOADS, {"result": "success"}, status.successes)
    families.add(RELOADS, {"result": "failure"}, status.failures)
    return families.result()
