"""Triage: what people say about a finding. The exporter stores it, and everybody who reads the finding sees it."""

from dataclasses import dataclass
from datetime import datetime

from ackscope.clock import stamp
from ackscope.findings import Severity

MAX_NAME = 80
"""Characters of the name of a person."""
MAX_REASON = 200
"""Characters of the reason of a mute."""
MAX_MUTE_SECONDS = 30 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What people say about one finding. Times are ISO 8601, UTC; names are as their writers gave them, "" if unknown.

    Attributes:
        acknowledged_at: when somebody acknowledged the finding; None if nobody did.
        owner: who works on it.
        muted_until: end of the mute; None without one.
        muted_severity: what the mute covers: a finding that becomes more severe counts again.
        mute_reason: why it was muted.
        muted: whether the mute applies now; only set in reports.
    """

    acknowledged_at: str | None = None
    acknowledged_by: str = ""
    owner: str = ""
    muted_until: str | None = None
    muted_severity: Severity | None = None
    muted_by: str = ""
    mute_reason: str = ""
    muted: bool = False

    def mutes(self, severity: Severity, wall: float) -> bool:
        """Whether the mute covers this severity at `wall`, seconds since 1970."""
        if self.muted_until is None or self.ended(wall):
            return False
        return self.muted_severity is None or severity.urgency >= self.muted_severity.urgency

    def ended(self, wall: float) -> bool:
        """Whether there was a mute that has ended at `wall`, seconds since 1970."""
        return self.muted_until is not None and stamp(datetime.fromisoformat(self.muted_until)) <= wall
