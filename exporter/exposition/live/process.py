"""Metrics of the exporter itself and of its probe process."""

from typing import NamedTuple

from prometheus_client.core import Metric

from ackscope import __version__
from exporter.exposition.specs import MetricFamilies, counter, gauge

BUILD = gauge("ackscope_build_info", "Version of ackscope; always 1.", "exporter", "version")
UP = gauge("ackscope_probe_process_up", "Whether the probe process is running.", "exporter")
RESTARTS = counter("ackscope_probe_process_restarts_total", "Restarts of the probe process.", "exporter")
BAD_LINES = counter(
    "ackscope_probe_process_bad_lines_total",
    "Unreadable lines from the probe process; their records are lost.",
    "exporter",
)

SPECS = (BUILD, UP, RESTARTS, BAD_LINES)


class SupervisedProcess(NamedTuple):
    """Status of the probe process.

    Attributes:
        up: whether it is running.
        restarts: number of restarts.
        bad_lines: lines that could not be decoded.
        age_seconds: seconds since its last line; None before the first.
    """

    up: bool
    restarts: int
    bad_lines: int
    age_seconds: float | None


def collect(status: SupervisedProcess | None) -> list[Metric]:
    """Metric families; without probes only the version."""
    families = MetricFamilies(SPECS)
    families.add(BUILD, {"version": __version__}, 1)
    if status is not None:
        families.add(UP, {}, int(status.up))
        families.add(RESTARTS, {}, status.restarts)
        families.add(BAD_LINES, {}, status.bad_lines)
    return families.result()
