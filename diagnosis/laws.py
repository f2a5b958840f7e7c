"""Laws and stories: a law reports messages that no story accounts for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ackscope.findings import Finding

LAWS = frozenset({"unexplained-loss"})
"""Rules that count messages without a named cause."""

_MOST = 0.8
"""Share of a law's messages that the stories must account for. The counts of both differ in time by some seconds."""


def without_explained(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those of laws whose messages other findings about the same subject account for.

    If those account for a part, the fact `accounted` of the law's finding says for how many.
    """
    accounted: Counter[tuple[str | None, str]] = Counter()
    for finding in findings:
        accounted[_queue(finding)] += finding.accounted or 0
    found: list[Finding] = []
    for each in findings:
        if each.rule not in LAWS:
            found.append(each)
        elif (part := accounted[_queue(each)]) < _MOST * _lost(each):
            found.append(replace(each, facts={**each.facts, "accounted": part}))
    return found


def _queue(finding: Finding) -> tuple[str | None, str]:
    return (finding.subject.vhost, finding.subject.name)


def _lost(finding: Finding) -> int:
    lost = finding.facts["lost"]
    return lost if isinstance(lost, int) else 0
