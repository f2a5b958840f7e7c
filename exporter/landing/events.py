"""Rows of events: completed and failed readings, and findings that began, changed or ended."""

from collections.abc import Collection, Mapping
from typing import Any

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, FindingKey
from ackscope.snapshot import Part, Snapshot
from ackscope.tables import FINDING_EVENTS, POLL_SAMPLES
from diagnosis.finding_changes import finding_changes
from diagnosis.text import render_summary
from exporter.landing.blocks import Block, row_blocks

_AGAIN = 60.0
"""Seconds after which a continuing failure gets another row."""


class Polls:
    """Makes rows of the readings of one cluster. Each successful reading gets one row."""

    def __init__(self) -> None:
        self._good: dict[str, Instant] = {}
        self._failing: dict[str, tuple[str, Instant]] = {}

    def take(self, snapshot: Snapshot, whole: Collection[str] = ()) -> list[Block]:
        """Return rows of the new successful readings, dated like their samples, and of new or continuing failures.

        `whole` names the families for which this reading landed a row of every object.
        """
        blocks = []
        for family, part in snapshot.parts.items():
            if part.at is not None and part.value is not None and self._good.get(family) != part.at:
                self._good[family] = part.at
                blocks += row_blocks(
                    POLL_SAMPLES, snapshot.cluster, part.at.wall, [_good(family, part, family in whole)]
                )
            if self._is_news(family, part.error, snapshot.taken):
                row = (family, False, None, part.age(snapshot.taken), None, None, False, part.error)
                blocks += row_blocks(POLL_SAMPLES, snapshot.cluster, snapshot.taken.wall, [row])
        return blocks

    def _is_news(self, family: str, error: str | None, now: Instant) -> bool:
        """Whether a failure is new or different, or its last row is at least `_AGAIN` old."""
        if error is None:
            self._failing.pop(family, None)
            return False
        before = self._failing.get(family)
        if before is not None and before[0] == error and now.since(before[1]) < _AGAIN:
            return False
        self._failing[family] = (error, now)
        return True


def _good(family: str, part: Part[Any], whole: bool) -> tuple[Any, ...]:  # noqa: FBT001  private, and named where it matters
    objects = len(part.value) if isinstance(part.value, tuple) else None
    return (family, True, part.seconds, 0.0, objects, sum(part.gaps.values()), whole, None)


class Findings:
    """Makes rows of the findings of one cluster that began, changed or ended."""

    def __init__(self) -> None:
        self._open: Mapping[FindingKey, Finding] | None = None

    def take(self, verdict: DiagnosisResult, at: Instant) -> list[Block]:
        """Return rows of the differences from the previous verdict.

        A finding stays open while its rule is inconclusive. Findings of the first verdict get the event `found`.
        """
        changes = finding_changes(self._open or {}, verdict)
        rows = [
            *(_row("changed", each, before.value) for each, before in changes.changed),
            *(_row("found" if self._open is None else "began", each) for each in changes.began),
            *(_row("ended", each) for each in changes.ended),
        ]
        self._open = changes.open
        return row_blocks(FINDING_EVENTS, verdict.cluster, at.wall, rows)


def _row(event: str, finding: Finding, severity_before: str | None = None) -> tuple[Any, ...]:
    subject = finding.subject
    return (
        finding.rule,
        event,
        finding.severity.value,
        severity_before,
        subject.kind,
        subject.vhost or "",
        subject.name,
        subject.node,
        finding.since,
        render_summary(finding),
    )
