"""Runs collectors. A failure affects only one collector, and two metrics report success and duration of each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import Metric

from ackscope.clock import Clock
from ackscope.log import get_logger
from exporter.exposition.encode import EncodedFamily, encode, merge_families
from exporter.exposition.specs import MetricFamilies, gauge

log = get_logger(__name__)

Source = Callable[[], Iterable[Metric]]

SUCCESS = gauge("ackscope_collector_success", "Whether the collector succeeded.", "exporter", "collector")
DURATION = gauge(
    "ackscope_collector_duration_seconds",
    "Duration of the collector, encoding included.",
    "exporter",
    "collector",
)
SPECS = (SUCCESS, DURATION)


@dataclass(frozen=True, slots=True)
class CollectorReport:
    """Result of one collector."""

    ok: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectorRun:
    """Result of a run: encoded families, each name once, and the report of each collector by name."""

    families: tuple[EncodedFamily, ...]
    reports: Mapping[str, CollectorReport]


def execute(sources: Mapping[str, Source], clock: Clock) -> CollectorRun:
    """Run every source. One that raises adds no metrics, is logged with its traceback and reported as failed."""
    families: list[EncodedFamily] = []
    reports: dict[str, CollectorReport] = {}
    for name, source in sources.items():
        started = clock.now()
        try:
            made = encode(source())
        except Exception:  # Boundary: a defect in one collector must not affect the others.
            log.exception("collector failed", collector=name)
            reports[name] = CollectorReport(ok=False, seconds=clock.now().since(started))
            continue
        families.extend(made)
        reports[name] = CollectorReport(ok=True, seconds=clock.now().since(started))
    return CollectorRun(tuple(merge_families(families)), reports)


def merge_runs(executions: Iterable[CollectorRun]) -> CollectorRun:
    """Merge runs of the same collectors over different snapshots. Durations add up; success means all succeeded."""
    families: list[EncodedFamily] = []
    reports: dict[str, CollectorReport] = {}
    for execution in executions:
        families.extend(execution.families)
        for name, report in execution.reports.items():
            before = reports.get(name, CollectorReport(ok=True, seconds=0.0))
            reports[name] = CollectorReport(ok=before.ok and report.ok, seconds=before.seconds + report.seconds)
    return CollectorRun(tuple(merge_families(families)), reports)


def report_metrics(reports: Mapping[str, CollectorReport]) -> list[Metric]:
    """Return the reports as metrics."""
    families = MetricFamilies(SPECS)
    for name, report in reports.items():
        labels = {"collector": name}
        families.add(SUCCESS, labels, int(report.ok))
        families.add(DURATION, labels, report.seconds)
    return families.result()
