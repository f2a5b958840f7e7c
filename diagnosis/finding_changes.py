"""What changed between two diagnoses of a cluster: findings that began, became more or less severe, or ended. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, DiagnosisResult, Finding, FindingKey, Severity, flat

MAX_ENDED = 50
"""Number of ended findings that are held per cluster, the latest ones."""
ENDED_SECONDS = 3600.0
"""For how long an ended finding is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChanges:
    """The differences of a diagnosis from what was open before.

    Attributes:
        open: findings that are open now. A finding stays open while its rule is inconclusive.
        began: findings that were not open before.
        changed: findings with another severity than before, and that earlier severity.
        ended: findings as they were last.
    """

    open: Mapping[FindingKey, Finding]
    began: tuple[Finding, ...] = ()
    changed: tuple[tuple[Finding, Severity], ...] = ()
    ended: tuple[Finding, ...] = ()


def finding_changes(before: Mapping[FindingKey, Finding], verdict: DiagnosisResult) -> FindingChanges:
    """Compare a diagnosis with the findings that were open before it."""
    found = {finding.key: finding for finding in verdict.findings if not finding.is_over}
    inconclusive = {each.rule for each in verdict.inconclusive}
    gone = {key: old for key, old in before.items() if key not in found}
    return FindingChanges(
        open={**found, **{key: old for key, old in gone.items() if old.rule in inconclusive}},
        began=tuple(it for key, it in found.items() if key not in before),
        changed=tuple(
            (it, before[key].severity)
            for key, it in found.items()
            if key in before and before[key].severity is not it.severity
        ),
        ended=tuple(old for old in gone.values() if old.rule not in inconclusive),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedFinding:
    """A finding that ended.

    Attributes:
        finding: as it was last.
        at: the first diagnosis without it.
    """

    finding: Finding
    at: Instant


def recently_ended(
    known: Sequence[EndedFinding], changes: FindingChanges, verdict: DiagnosisResult, now: Instant
) -> tuple[EndedFinding, ...]:
    """Return the warnings and critical findings that ended within `ENDED_SECONDS`, the latest first.

    One that came back, or became the consequence of another finding, has not ended. Early findings are no news.
    """
    present = {each.key for each in flat(verdict.findings) if not each.is_over} | changes.open.keys()
    ended = [
        EndedFinding(finding=each, at=now)
        for each in changes.ended
        if each.severity is not Severity.INFO and each.certainty is not Certainty.EARLY
    ]
    remaining = [each for each in known if now.since(each.at) <= ENDED_SECONDS]
    return tuple(each for each in (*ended, *remaining) if each.finding.key not in present)[:MAX_ENDED]
