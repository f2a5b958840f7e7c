"""How reading the configuration again went; the names are those that Prometheus has for its own."""

from typing import NamedTuple

from prometheus_client.core import Metric

from exporter.exposition.specs import MetricFamilies, counter, gauge

SUCCESSFUL = gauge(
    "ackscope_config_last_reload_successful",
    "Whether the file was good when it was read last; where it was not, the settings before it stay.",
    "exporter",
)
AT = gauge(
    "ackscope_config_last_reload_success_timestamp_seconds",
    "When the settings that are in force were read, in seconds since 1970.",
    "exporter",
)
RELOADS = counter(
    "ackscope_config_reloads_total", "Times that the file was read again since the start.", "exporter", "result"
)

SPECS = (SUCCESSFUL, AT, RELOADS)


class ReloadStatus(NamedTuple):
    """How reloads went.

    Attributes:
        successful: whether the last one did.
        at: when the last good one did, wall clock.
        successes: good ones since the start, which itself counts in none of the two.
        failures: those that were refused.
    """

    successful: bool
    at: float
    successes: int = 0
    failures: int = 0


def collect(status: ReloadStatus) -> list[Metric]:
    """Families."""
    families = MetricFamilies(SPECS)
    families.add(SUCCESSFUL, {}, int(status.successful))
    families.add(AT, {}, status.at)
    families.add(RELOADS, {"result": "success"}, status.successes)
    families.add(RELOADS, {"result": "failure"}, status.failures)
    return families.result()
