"""Run collectors: each one's error is its own, and two metrics tell how each did."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric

from ackscope.clock import Clock
from exporter.metrics import Families, gauge

log = logging.getLogger(__name__)

Source = Callable[[], Iterable[Metric]]

SUCCESS = gauge("ackscope_collector_success", "Whether the collector made its metrics.", "exporter", "collector")
DURATION = gauge("ackscope_collector_duration_seconds", "How long the collector took.", "exporter", "collector")
SPECS = (SUCCESS, DURATION)


@dataclass(frozen=True, slots=True)
class Report:
    """How one collector did."""

    ok: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Execution:
    """What the collectors made, and how each did, by its name."""

    metrics: tuple[Metric, ...]
    reports: Mapping[str, Report]


def execute(sources: Mapping[str, Source], clock: Clock) -> Execution:
    """Run every source; one that raises contributes nothing, is logged with its traceback, and is reported."""
    metrics: list[Metric] = []
    reports: dict[str, Report] = {}
    for name, source in sources.items():
        started = clock.now()
        try:
            made = list(source())
        except Exception:  # The boundary: a defect of one collector must not take the others' metrics away.
            log.exception("collector %s failed; the others go on", name)
            reports[name] = Report(ok=False, seconds=clock.now().since(started))
            continue
        metrics.extend(made)
        reports[name] = Report(ok=True, seconds=clock.now().since(started))
    return Execution(tuple(metrics), reports)


def report_metrics(reports: Mapping[str, Report]) -> list[Metric]:
    """The reports as metrics."""
    families = Families(SPECS)
    for name, report in reports.items():
        labels = {"collector": name}
        families.add(SUCCESS, labels, int(report.ok))
        families.add(DURATION, labels, report.seconds)
    return families.result()
