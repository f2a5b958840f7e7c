"""Run collectors: each one's error is its own, and two metrics tell how each did."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric

from ackscope.clock import Clock
from exporter.exposition.encode import EncodedFamily, encode, merge_families
from exporter.exposition.specs import MetricFamilies, gauge

log = logging.getLogger(__name__)

Source = Callable[[], Iterable[Metric]]

SUCCESS = gauge("ackscope_collector_success", "Whether the collector made its metrics.", "exporter", "collector")
DURATION = gauge(
    "ackscope_collector_duration_seconds",
    "How long the collector took to make and to write its metrics.",
    "exporter",
    "collector",
)
SPECS = (SUCCESS, DURATION)


@dataclass(frozen=True, slots=True)
class CollectorReport:
    """How one collector did."""

    ok: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectorRun:
    """What the collectors made, written, each name once; and how each did, by its name."""

    families: tuple[EncodedFamily, ...]
    reports: Mapping[str, CollectorReport]


def execute(sources: Mapping[str, Source], clock: Clock) -> CollectorRun:
    """Run every source; one that raises contributes nothing, is logged with its traceback, and is reported."""
    families: list[EncodedFamily] = []
    reports: dict[str, CollectorReport] = {}
    for name, source in sources.items():
        started = clock.now()
        try:
            made = encode(source())
        except Exception:  # The boundary: a defect of one collector must not take the others' metrics away.
            log.exception("collector %s failed; the others go on", name)
            reports[name] = CollectorReport(ok=False, seconds=clock.now().since(started))
            continue
        families.extend(made)
        reports[name] = CollectorReport(ok=True, seconds=clock.now().since(started))
    return CollectorRun(tuple(merge_families(families)), reports)


def merge_runs(executions: Iterable[CollectorRun]) -> CollectorRun:
    """Several runs of the same collectors, each on something else, as one: all were well, the times add up."""
    families: list[EncodedFamily] = []
    reports: dict[str, CollectorReport] = {}
    for execution in executions:
        families.extend(execution.families)
        for name, report in execution.reports.items():
            before = reports.get(name, CollectorReport(ok=True, seconds=0.0))
            reports[name] = CollectorReport(ok=before.ok and report.ok, seconds=before.seconds + report.seconds)
    return CollectorRun(tuple(merge_families(families)), reports)


def report_metrics(reports: Mapping[str, CollectorReport]) -> list[Metric]:
    """The reports as metrics."""
    families = MetricFamilies(SPECS)
    for name, report in reports.items():
        labels = {"collector": name}
        families.add(SUCCESS, labels, int(report.ok))
        families.add(DURATION, labels, report.seconds)
    return families.result()
