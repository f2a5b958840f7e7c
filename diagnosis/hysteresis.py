"""Hysteresis of findings: each stays for a short time after its evidence was last seen, so that it does not flap.

Its beginning and its stated duration (the fact `held_seconds`) agree: what has lasted for 3 min began 3 min ago.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ackscope.clock import iso
from ackscope.findings import Finding, flat

_HELD = "held_seconds"
_FORGOTTEN = 300.0
"""Seconds from which on a duration may be that of the window (`diagnosis.window.HORIZON`), not of the standstill. A
standstill that began again is shorter.
"""


def apply_hysteresis(findings: Sequence[Finding], before: Sequence[Finding], now: str, hold: float) -> list[Finding]:
    """Return the current findings with their earliest `since`, and previous ones last seen within `hold` seconds.

    Args:
        findings: current findings of the rules, flat.
        before: findings of the previous result.
        now: ISO 8601, UTC.
        hold: seconds that a finding stays after its evidence was last seen.
    """
    earlier = {finding.key: finding for finding in flat(before) if not finding.is_over}
    seen = [_since_it_held(replace(finding, last_seen=now), earlier.get(finding.key), now) for finding in findings]
    lasting = [_lasting(finding, earlier.get(finding.key), hold) for finding in seen]
    here = {finding.key for finding in findings}
    held = [
        replace(finding, consequences=())
        for key, finding in earlier.items()
        if key not in here and finding.last_seen and _seconds(finding.last_seen, now) <= hold
    ]
    return [*lasting, *held]


def _since_it_held(finding: Finding, before: Finding | None, now: str) -> Finding:
    """Return the finding with a beginning that is not later than its duration says, and a duration that goes on.

    A window that forgets would understate the duration. What has settled something since was not held for so long.
    """
    held = _held(finding)
    if held is None:
        return finding
    known = _held(before) if before else None
    if known is not None and before is not None and before.last_seen and held >= _FORGOTTEN:
        goes_on = known + _seconds(before.last_seen, now)
        if known >= _FORGOTTEN and goes_on > held:
            held = goes_on
            finding = replace(finding, facts={**finding.facts, _HELD: held})
    began = iso(datetime.fromisoformat(now).timestamp() - held)
    return replace(finding, since=began) if finding.since and began < finding.since else finding


def _held(finding: Finding) -> float | None:
    held = finding.facts.get(_HELD)
    return float(held) if isinstance(held, int | float) else None


def _lasting(finding: Finding, before: Finding | None, hold: float) -> Finding:
    if before is None:
        return finding
    if _is_same_event(before, finding):
        # Older readings are further apart, so its time and its figures were more exact before.
        return replace(before, last_seen=finding.last_seen, consequences=())
    if _was_worse(before, finding) and before.last_seen and _seconds(before.last_seen, finding.last_seen or "") <= hold:
        # One milder reading must not lower the severity. The old finding ends `hold` seconds after it was last seen.
        return replace(before, accounted=finding.accounted, consequences=())
    # Both are ISO 8601 in UTC with seconds, so text order is time order.
    if not before.since or not finding.since or before.since >= finding.since:
        return finding
    return replace(finding, since=before.since)


def _is_same_event(before: Finding, finding: Finding) -> bool:
    """Return whether both are about what happened at once, as often, and the later one is less exact about when."""
    if before.over_since is None or finding.over_since is None or not before.since or not finding.since:
        return False
    as_often = before.facts.get("times") == finding.facts.get("times")
    return as_often and finding.since <= before.since and before.over_since <= finding.over_since


def _was_worse(before: Finding, finding: Finding) -> bool:
    """Return whether it was more urgent by itself. A severity taken over from a consequence does not count."""
    lent = any(each.severity is before.severity for each in before.consequences)
    return before.severity.urgency < finding.severity.urgency and not lent


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
