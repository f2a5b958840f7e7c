"""clock-skew (D17): the clock of the broker and that of ackscope differ.

Times of the broker are corrected by the difference, so that no other rule depends on it.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from diagnosis.contract import RuleResult, View

NAME = "clock-skew"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the node that answered for the cluster."""
    offset, limits = view.overview.clock_offset if view.overview else None, view.thresholds.nodes
    if view.overview is None or offset is None or abs(offset) < limits.clock_skew:
        return
    node = view.overview.node
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if abs(offset) >= limits.clock_skew_large else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            "node": node,
            "seconds": abs(offset),
            "ahead": offset > 0,
            "tolerated_seconds": limits.clock_skew,
            "large_seconds": limits.clock_skew_large,
        },
        evidence=(
            Evidence(key="offset", value=offset, unit=Unit.SECONDS, source=source("/api/overview", "header Date")),
        ),
        involved=Involved(nodes=() if node is None else (node,)),
        certainty=Certainty.CERTAIN,
    )
