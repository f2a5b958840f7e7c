"""What diagnosis says, as series: a finding each, and each rule that could not tell."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.findings import DiagnosisResult, Finding
from exporter.exposition.cardinality.selection import CardinalityLimits
from exporter.exposition.specs import MetricFamilies, counter, gauge
from exporter.runtime.state import ClusterState

FINDING = gauge(
    "ackscope_finding",
    "1 for each finding in force: the rule, how soon to act, and what it is about.",
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
    "1 for each rule that lacks something to answer that it could be given; /api/v1/findings says what.",
    "diagnosis",
    "cluster",
    "rule",
)
DURATION = gauge("ackscope_diagnosis_duration_seconds", "How long the latest diagnosis took.", "diagnosis", "cluster")
ERRORS = counter(
    "ackscope_diagnosis_errors_total",
    "Times that diagnosis failed by a defect of its own; the verdict before stays.",
    "diagnosis",
    "cluster",
)
DROPPED = gauge(
    "ackscope_dropped_findings",
    "Findings whose own series are left out by the cap, the least pressing ones; /api/v1/findings has them all.",
    "diagnosis, metrics.max_findings",
    "cluster",
)

SPECS = (FINDING, INCONCLUSIVE, DURATION, ERRORS, DROPPED)


def collect(states: Mapping[str, ClusterState], limits: CardinalityLimits) -> list[Metric]:
    """Families of all clusters; findings are ranked, so the cap leaves out the least."""
    families = MetricFamilies(SPECS)
    for cluster, state in states.items():
        labels = {"cluster": cluster}
        families.add(DURATION, labels, state.diagnosis_seconds)
        families.add(ERRORS, labels, state.diagnosis_errors)
        if state.verdict is not None:
            _verdict(families, state.verdict, limits.findings)
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
    # What this broker never tells is in the API only: an alert on it could never be resolved.
    for rule in sorted({gap.rule for gap in verdict.inconclusive if not gap.permanent}):
        families.add(INCONCLUSIVE, {"cluster": verdict.cluster, "rule": rule}, 1)
    families.add(DROPPED, {"cluster": verdict.cluster}, max(0, len(ranked) - limit))
