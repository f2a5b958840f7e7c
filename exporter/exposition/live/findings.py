"""Metrics of the findings of diagnosis and of inconclusive rules."""

from collections.abc import Callable, Mapping

from prometheus_client.core import Metric

from ackscope.findings import DiagnosisResult, Finding, FindingKey
from ackscope.triage import Triage
from exporter.exposition.cardinality.selection import CardinalityLimits
from exporter.exposition.specs import MetricFamilies, counter, gauge
from exporter.runtime.state import ClusterState
from exporter.triage.store import number_muted

FINDING = gauge(
    "ackscope_finding",
    "1 for each active finding: rule, severity and subject.",
    "diagnosis",
    "cluster",
    "rule",
    "severity",
    "kind",
    "vhost",
    "name",
)
INCONCLUSIVE = gauge(
    "ackscope_diagnosis_cannot_tell",
    "1 for each inconclusive rule that lacks data which could be provided; /api/v1/findings says which.",
    "diagnosis",
    "cluster",
    "rule",
)
DURATION = gauge("ackscope_diagnosis_duration_seconds", "Duration of the latest diagnosis.", "diagnosis", "cluster")
ERRORS = counter(
    "ackscope_diagnosis_errors_total",
    "Times that diagnosis failed because of a bug; the previous result stays.",
    "diagnosis",
    "cluster",
)
DROPPED = gauge(
    "ackscope_dropped_findings",
    "Findings without a series of their own because of the limit, the least severe ones; /api/v1/findings has all.",
    "diagnosis, metrics.max_findings",
    "cluster",
)
MUTED = gauge(
    "ackscope_muted_findings",
    "Active findings that somebody muted: the headline of the dashboard does not count them, ackscope_finding does.",
    "/api/v1/triage",
    "cluster",
)

SPECS = (FINDING, INCONCLUSIVE, DURATION, ERRORS, DROPPED, MUTED)


def collect(
    states: Mapping[str, ClusterState],
    limits: CardinalityLimits,
    triage: Callable[[str], Mapping[FindingKey, Triage]] = lambda _: {},
    wall: float = 0.0,
) -> list[Metric]:
    """Metric families of all clusters. Findings are ranked, so the limit omits the least severe ones.

    Args:
        states: state of each cluster.
        limits: limits of the number of series.
        triage: cluster name -> what people say about its findings.
        wall: the time at which mutes count, seconds since 1970.
    """
    families = MetricFamilies(SPECS)
    for cluster, state in states.items():
        labels = {"cluster": cluster}
        families.add(DURATION, labels, state.diagnosis_seconds)
        families.add(ERRORS, labels, state.diagnosis_errors)
        if state.verdict is not None:
            _verdict(families, state.verdict, limits.findings)
            families.add(MUTED, labels, number_muted(state.verdict.findings, triage(cluster), wall))
    return families.result()


def _verdict(families: MetricFamilies, verdict: DiagnosisResult, limit: int) -> None:
    distinct: dict[tuple[str, str, str, str], Finding] = {}
    for finding in verdict.findings:
        distinct.setdefault(finding.key, finding)
    ranked = list(distinct.values())
    for finding in ranked[:limit]:
        labels = {
            "cluster": verdict.cluster,
            "rule": finding.rule,
            "severity": finding.severity.value,
            "kind": finding.subject.kind,
            "vhost": finding.subject.vhost or "",
            "name": finding.subject.name,
        }
        families.add(FINDING, labels, 1)
    # Rules that can never be decided for this broker are only in the API: an alert on them would never resolve.
    for rule in sorted({gap.rule for gap in verdict.inconclusive if not gap.permanent}):
        families.add(INCONCLUSIVE, {"cluster": verdict.cluster, "rule": rule}, 1)
    families.add(DROPPED, {"cluster": verdict.cluster}, max(0, len(ranked) - limit))
