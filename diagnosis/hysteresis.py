"""Hysteresis of findings: each stays for a short time after its evidence was last seen, so that it does not flap."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ackscope.findings import Finding, flat


def apply_hysteresis(findings: Sequence[Finding], before: Sequence[Finding], now: str, hold: float) -> list[Finding]:
    """Return the current findings with their earliest `since`, and previous ones last seen within `hold` seconds.

    Args:
        findings: current findings of the rules, flat.
        before: findings of the previous result.
        now: ISO 8601, UTC.
        hold: seconds that a finding stays after its evidence was last seen.
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
        # One milder reading must not lower the severity. The old finding ends `hold` seconds after it was last seen.
        return replace(before, consequences=())
    # Both are ISO 8601 in UTC with seconds, so text order is time order.
    if not before.since or not finding.since or before.since >= finding.since:
        return finding
    return replace(finding, since=before.since)


def _was_worse(before: Finding, finding: Finding) -> bool:
    """Return whether it was more urgent by itself. A severity taken over from a consequence does not count."""
    lent = any(each.severity is before.severity for each in before.consequences)
    return before.severity.urgency < finding.severity.urgency and not lent


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
