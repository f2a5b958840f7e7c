"""Laws and stories: a law reports messages that no story accounts for."""

from collections.abc import Sequence

from ackscope.findings import Finding

LAWS = frozenset({"unexplained-loss"})
"""Rules that count messages without a named cause."""

_MOST = 0.8
"""Share of a law's messages that the stories must account for. The counts of both differ in time by some seconds."""


def without_explained(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those of laws whose messages other findings about the same subject account for."""
    accounted: dict[object, int] = {}
    for finding in findings:
        if finding.accounted is not None:
            accounted[finding.subject.vhost, finding.subject.name] = (
                accounted.get((finding.subject.vhost, finding.subject.name), 0) + finding.accounted
            )
    return [
        finding
        for finding in findings
        if finding.rule not in LAWS
        or accounted.get((finding.subject.vhost, finding.subject.name), 0) < _MOST * _lost(finding)
    ]


def _lost(finding: Finding) -> int:
    lost = finding.facts["lost"]
    return lost if isinstance(lost, int) else 0
