"""version-skew (E09): nodes run different versions, or feature flags are off that the next version demands.

An upgrade in progress looks like the first; it is a fault when it stays. The second is told once for the cluster.
Source: https://www.rabbitmq.com/docs/feature-flags, https://www.rabbitmq.com/docs/rolling-upgrade
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import running, tail
from diagnosis.series import span
from diagnosis.words import amount, lasting, some

NAME = "version-skew"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding where versions differ; else one where stable feature flags are off."""
    if len(_versions(view.nodes)) > 1:
        yield _skew(view)
        return
    off = sorted(
        flag.name
        for flag in view.features
        if not flag.deprecated and flag.stage == "stable" and flag.state == "disabled"
    )
    if off:
        yield _flags(view, off)


def _versions(nodes: Sequence[Node]) -> set[str]:
    return {node.rabbitmq_version for node in nodes if node.running and node.rabbitmq_version}


def _skew(view: View) -> FindingReport:
    recent = tail(view.window.readings("nodes"), lambda nodes: len(_versions(nodes)) > 1)
    long = tail(view.trend("nodes"), lambda nodes: len(_versions(nodes)) > 1)
    seen = long if span(long) > span(recent) else recent
    seconds = span(seen)
    late = seconds >= view.thresholds.cluster.skew_for
    patience = "" if late else f"; an upgrade looks the same, warning after {lasting(view.thresholds.cluster.skew_for)}"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=seen[0].at.iso() if seen else None,
        summary=f"Nodes run different versions for {lasting(seconds)} or more: "
        f"{' and '.join(sorted(_versions(view.nodes)))}{patience}",
        cause="An upgrade is under way, or it stopped half-way; new features stay off until all nodes have them.",
        evidence=tuple(
            EvidenceReport(
                what=f"node {node.name!r}",
                value=node.rabbitmq_version or "not told",
                expected="the same as the others",
                source="/api/nodes applications.rabbit",
            )
            for node in running(view)[:7]
        ),
        next_steps=(
            "ask who upgrades it; mixed versions are meant for the hours of an upgrade only",
            "finish it: upgrade the remaining nodes one by one (rabbitmq-upgrade drain, stop, install, start)",
            "when all nodes have the new version: rabbitmqctl enable_feature_flag all",
        ),
        runbook=runbook(NAME),
    )


def _flags(view: View, off: Sequence[str]) -> FindingReport:
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"{amount(len(off), 'stable feature flag')} of this version {'is' if len(off) == 1 else 'are'} off: a "
        "later version may refuse to start until they are on",
        cause="They are turned on by hand after each upgrade, and somebody has yet to do so.",
        evidence=(
            EvidenceReport(
                what="stable feature flags that are off",
                value=some(off, 10),
                expected="none",
                source="/api/feature-flags state, stability",
            ),
        ),
        next_steps=(
            "see them: rabbitmqctl list_feature_flags name state stability",
            (
                "turn them on, while all nodes run (there is no way back to the version before): "
                "rabbitmqctl enable_feature_flag all"
            ),
        ),
        runbook=runbook(NAME),
    )
