"""sources-disagree: the management API and the Prometheus endpoints report different figures of the same queues.

Both read the same tables of the nodes, so a lasting difference means that one of them is out of date, incomplete, or of
another cluster. It explains no other finding.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, source
from diagnosis.contract import RuleResult, View

NAME = "sources-disagree"

_MOST_ROWS = 5


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster, with the largest differences."""
    metrics = view.metrics
    if metrics is None or not metrics.disagreements:
        return
    evidence = [
        Evidence(
            key="figure",
            value=each.management,
            source=source("/api/queues", each.figure) + source("/metrics/detailed", each.metric),
            facts={
                "queue": each.queue,
                "vhost": each.vhost,
                "figure": each.figure,
                "management_value": each.management,
                "prometheus_value": each.prometheus,
            },
        )
        for each in metrics.disagreements[:_MOST_ROWS]
    ]
    first = metrics.disagreements[0]
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            "figures": len(metrics.disagreements),
            "queue": first.queue,
            "vhost": first.vhost,
            "figure": first.figure,
            "management_value": first.management,
            "prometheus_value": first.prometheus,
            "nodes": list(metrics.nodes),
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
    )
