"""version-skew (E09): nodes run different versions, or feature flags are off that a later version requires.

An upgrade in progress looks the same as different versions; it is a fault if it stays. Disabled feature flags are one
finding for the cluster.
Source: https://www.rabbitmq.com/docs/feature-flags, https://www.rabbitmq.com/docs/rolling-upgrade
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import only_metrics
from diagnosis.rules.cluster._shared.cluster_state import running_nodes
from diagnosis.rules.nodes._shared.node_history import cluster_subject, trailing
from diagnosis.series import span

NAME = "version-skew"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding where versions differ; else one where stable feature flags are off."""
    if len(_versions(view.nodes)) > 1:
        yield _skew(view)
        return
    if view.reads_only_metrics:
        yield only_metrics(NAME)
        return
    off = sorted(
        flag.name
        for flag in view.features
        if not flag.deprecated and flag.stage == "stable" and flag.state == "disabled"
    )
    if off:
        yield _disabled_flags(view, off)


def _versions(nodes: Sequence[Node]) -> set[str]:
    return {node.rabbitmq_version for node in nodes if node.running and node.rabbitmq_version}


def _skew(view: View) -> Finding:
    recent = trailing(view.window.readings("nodes"), lambda nodes: len(_versions(nodes)) > 1)
    long = trailing(view.trend("nodes"), lambda nodes: len(_versions(nodes)) > 1)
    seen = long if span(long) > span(recent) else recent
    limit = view.thresholds.cluster.skew_for
    lasting = span(seen) >= limit
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=cluster_subject(view),
        since=seen[0].at.iso() if seen else None,
        facts={
            "versions": sorted(_versions(view.nodes)),
            "disabled_flags": [],
            "warning_after_seconds": limit,
        },
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY,
        seen_seconds=span(seen),
        evidence=tuple(
            Evidence(
                key="version",
                value=node.rabbitmq_version,
                source=source("/api/nodes", "applications"),
                facts={"node": node.name},
            )
            for node in running_nodes(view)[:7]
        ),
        involved=Involved(nodes=tuple(node.name for node in running_nodes(view))),
    )


def _disabled_flags(view: View, off: Sequence[str]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=cluster_subject(view),
        facts={"versions": sorted(_versions(view.nodes)), "disabled_flags": list(off)},
        certainty=Certainty.CERTAIN,
        evidence=(Evidence(key="flags", source=source("/api/feature-flags", "state", "stability")),),
    )
