"""Findings that neither flap nor linger: each stays for a short while after its evidence was last seen."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ackscope.findings import Finding, flat


def apply_hysteresis(findings: Sequence[Finding], before: Sequence[Finding], now: str, hold: float) -> list[Finding]:
    """The findings of now, with the time told since when they last, and those of before that ended just now.

    Args:
        findings: what the rules found now, flat.
        before: findings of the verdict before, as they were told.
        now: ISO 8601, UTC.
        hold: seconds that one stays after its evidence was last seen.
    """
    earlier = {finding.key: finding for finding in flat(before)}
    lasting = [_lasting(replace(finding, last_seen=now), earlier.get(finding.key), hold) for finding in findings]
    here = {finding.key for finding in findings}
    held = [
        replace(finding, consequences=())
        for key, finding in earlier.items()
        if key not in here and finding.last_seen and _seconds(finding.last_seen, now) <= hold
    ]
    return [*lasting, *held]


def _lasting(finding: Finding, before: Finding | None, hold: float) -> Finding:
    if before is None:
        return finding
    if _was_worse(before, finding) and before.last_seen and _seconds(before.last_seen, finding.last_seen or "") <= hold:
        # One reading that shows less does not turn a warning into a note; its own last moment then ends it.
        return replace(before, consequences=())
    # Both are ISO 8601 in UTC to the second: text order is time order.
    if not before.since or not finding.since or before.since >= finding.since:
        return finding
    return replace(finding, since=before.since)


def _was_worse(before: Finding, finding: Finding) -> bool:
    """Whether it was more urgent by itself: a cause is told as urgent as the worst of its consequences."""
    lent = any(each.severity is before.severity for each in before.consequences)
    return before.severity.urgency < finding.severity.urgency and not lent


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
