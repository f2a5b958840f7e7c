"""Statistics of the timed steps of one stream: counts since the start, recent durations, and pending records."""

from collections import Counter
from typing import NamedTuple

from ackscope.clock import Instant
from ackscope.records import ProbeStep, StepRecord
from probes.identity import Identity
from probes.recent_values import RecentCounts, RecentValues

_OK, _FAILED = "ok", "failed"


class _Timed(NamedTuple):
    step: str
    at: float
    seconds: float | None
    reason: str | None


class Steps:
    """Statistics of timed steps.

    Args:
        span: length of the window in seconds; None for the whole run.
    """

    def __init__(self, who: Identity, *, span: float | None) -> None:
        self._who, self._span = who, span
        self._durations: dict[str, RecentValues] = {}
        self._attempts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._reasons: dict[str, str | None] = {}
        self._recent = RecentCounts(span=span)
        self._waiting: list[_Timed] = []

    @property
    def waiting(self) -> int:
        """Number of pending records."""
        return len(self._waiting)

    def ok(self, step: str, at: float, seconds: float) -> None:
        """Record a successful step; `at` is its start in monotonic seconds."""
        self._enter(step, at, seconds, None)

    def failed(self, step: str, at: float, reason: str, seconds: float | None = None) -> None:
        """Record a failed step; `seconds` is its duration, if it completed."""
        self._enter(step, at, seconds, reason)

    def clean(self, now: float) -> bool | None:
        """Return whether every recent step succeeded; None without steps."""
        counts = self._recent.total(now)
        return None if not counts else not counts[_FAILED]

    def summary(self, now: float) -> dict[str, ProbeStep]:
        """Return summaries of all steps by name, in the order of first use."""
        return {
            step: ProbeStep(
                attempts=attempts,
                failures=self._failures[step],
                seconds=self._durations[step].summary(now),
                reason=self._reasons[step],
            )
            for step, attempts in self._attempts.items()
        }

    def take(self, now: Instant) -> list[StepRecord]:
        """Remove and return the pending records."""
        waiting, self._waiting = self._waiting, []
        who, wall = self._who, now.wall - now.mono
        return [
            StepRecord(
                probe=who.probe,
                stream=who.stream,
                vhost=who.vhost,
                node=who.node,
                run_id=who.run_id,
                at=wall + timed.at,
                step=timed.step,
                seconds=timed.seconds,
                ok=timed.reason is None,
                reason=timed.reason,
            )
            for timed in waiting
        ]

    def _enter(self, step: str, at: float, seconds: float | None, reason: str | None) -> None:
        recent = self._durations.setdefault(step, RecentValues(span=self._span))
        self._attempts[step] += 1
        self._reasons[step] = reason
        end = at + (seconds or 0.0)
        self._recent.add(_OK if reason is None else _FAILED, end)
        if reason is None and seconds is not None:
            recent.record(seconds, end)
        else:
            self._failures[step] += 1
        self._waiting.append(_Timed(step, at, seconds, reason))
