"""Laws and stories: a law reports messages that no story accounts for."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ackscope.findings import Finding

LAWS = frozenset({"unexplained-loss"})
"""Rules that count messages without a named cause."""

_MOST = 0.8
"""Share of a law's messages that the stories must account for. The counts of both differ in time by some seconds."""


def without_explained(
    findings: Sequence[Finding], seen: Collection[tuple[str, str, str, str]], previous: str | None
) -> list[Finding]:
    """Return the findings without those of laws whose messages other findings about the same subject account for.

    If those account for a part, the fact `accounted` of the law's finding says for how many. A finding that counts
    messages gives way to a law that reports them now if two results in a row lacked its evidence: that of one may be
    missing by chance, and then the two would alternate.

    Args:
        findings: of the rules and of those that stay, flat.
        seen: keys of those whose evidence is of now.
        previous: time of the result before, ISO 8601, UTC; None if this is the first.
    """
    broken = {_queue(each) for each in findings if each.rule in LAWS and each.key in seen}
    findings = [
        each for each in findings if each.key in seen or _queue(each) not in broken or not _is_outdated(each, previous)
    ]
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


def _is_outdated(finding: Finding, previous: str | None) -> bool:
    """Return whether a finding counts messages of what goes on, and the result before lacked its evidence, too."""
    if finding.rule in LAWS or finding.accounted is None or finding.over_since is not None:
        return False
    # Both are ISO 8601 in UTC with seconds, so text order is time order.
    return previous is not None and finding.last_seen is not None and finding.last_seen < previous


def _queue(finding: Finding) -> tuple[str | None, str]:
    return (finding.subject.vhost, finding.subject.name)


def _lost(finding: Finding) -> int:
    lost = finding.facts["lost"]
    return lost if isinstance(lost, int) else 0
