"""The exporter itself and its probe process."""

from typing import NamedTuple

from prometheus_client.core import Metric

from ackscope import __version__
from exporter.exposition.specs import MetricFamilies, counter, gauge

BUILD = gauge("ackscope_build_info", "The version of ackscope; always 1.", "exporter", "version")
UP = gauge("ackscope_probe_process_up", "Whether the probe process runs.", "exporter")
RESTARTS = counter("ackscope_probe_process_restarts_total", "Times that it had to be started again.", "exporter")
BAD_LINES = counter(
    "ackscope_probe_process_bad_lines_total",
    "Lines of it that could not be read; their records are lost.",
    "exporter",
)

SPECS = (BUILD, UP, RESTARTS, BAD_LINES)


class ProbeProcessStatus(NamedTuple):
    """How the probe process does.

    Attributes:
        restarts: times that it was started again after it had ended.
        bad_lines: lines that did not decode.
        age_seconds: since it last said something; None before.
    """

    up: bool
    restarts: int
    bad_lines: int
    age_seconds: float | None


def collect(status: ProbeProcessStatus | None) -> list[Metric]:
    """Families; without probes there is only the version."""
    families = MetricFamilies(SPECS)
    families.add(BUILD, {"version": __version__}, 1)
    if status is not None:
        families.add(UP, {}, int(status.up))
        families.add(RESTARTS, {}, status.restarts)
        families.add(BAD_LINES, {}, status.bad_lines)
    return families.result()
