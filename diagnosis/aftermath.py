"""What has ended and cannot be undone: a loss of messages stays as information for some minutes after its end.

Evidence fades from the window, and a loss that is over is no reason to wake anybody. But who looks five minutes later
asks where the messages are. So such a finding falls to information, with the time at which it was over. An alert about
it is resolved then, and the finding itself ends after `STAYS_SECONDS`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ackscope.findings import Finding, Impact, Severity, flat
from diagnosis.contract import Rule
from diagnosis.laws import LAWS

STAYS_SECONDS = 720.0
"""Seconds after its end for which a loss stays: as long as a window of ten minutes (its oldest reading may be a little
older) shows that messages are missing, or the law would report them again without their cause.
"""


def ended_losses(
    before: Sequence[Finding],
    present: Sequence[Finding],
    now: str,
    rules: Mapping[str, Rule],
    judged: Collection[str],
) -> list[Finding]:
    """Return what ended within the last minutes, as information.

    Args:
        before: findings of the previous result.
        present: findings of now, flat.
        now: ISO 8601, UTC.
        rules: rules by name.
        judged: rules that were judged now. Of others it is not known whether what they report has ended.
    """
    here = {finding.key for finding in present}
    # Another rule may have found out more about the same loss.
    named = (each for each in present if each.rule not in LAWS)
    known = {each.subject for each in named if (rule := rules.get(each.rule)) and rule.impact is Impact.LOSS}
    return [
        replace(each, severity=Severity.INFO, over_since=over, consequences=())
        for each in flat(before)
        if each.key not in here
        and each.subject not in known
        and (rule := rules.get(each.rule)) is not None
        and rule.stays
        and (each.is_over or (each.severity is not Severity.INFO and each.rule in judged))
        and (over := each.over_since or each.last_seen) is not None
        and _seconds(over, now) <= STAYS_SECONDS
    ]


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
