"""Moves all times in a window if the wall clock of this machine was set.

Rules compare the times of readings with each other, with the present time, and with those of the broker, which are
converted to our clock when they are read. If our clock is set, all of them are moved by as much. What has lasted for a
minute has then still lasted for a minute, and nothing is in the future.
"""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any, TypeVar

from ackscope.amqp10 import AmqpSession
from ackscope.clock import Instant, iso
from ackscope.findings import DiagnosisResult, Finding
from ackscope.past import ClusterPast
from ackscope.snapshot import Channel, Connection, Overview, Part, Queue, Snapshot
from diagnosis.endings import Ending
from diagnosis.former_consumers import FormerConsumer
from diagnosis.left_clients import LeftClient
from diagnosis.pauses import Pause

T = TypeVar("T")

_PARTS = tuple(each.name for each in fields(Snapshot) if each.default_factory is Part)

TIMED: dict[type, tuple[str, ...]] = {
    Snapshot: ("taken", *_PARTS),
    Part: ("at", "value"),
    Overview: ("past",),
    ClusterPast: ("begin",),
    Queue: ("idle_since", "details_at"),
    Channel: ("idle_since",),
    Connection: ("connected_at", "quiet_since"),
    AmqpSession: ("read_at",),
    Ending: ("readings", "after", "successor", "back"),
    Pause: ("begin", "end"),
    LeftClient: ("connection", "last", "gone"),
    FormerConsumer: ("connection", "gone"),
}
"""Fields that are a time by our wall clock or contain one: an instant, or seconds since 1970."""


class Redating:
    """Moves the times of objects. What is shared stays shared, and what has no time stays the same object.

    Args:
        seconds: by how much the wall clock was set.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The originals are held as well, so that no other object gets their id.
        self._known: dict[int, tuple[Any, Any]] = {}

    def of(self, value: T) -> T:
        """Return a value by the new time."""
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._redated(value))
        found: T = known[1]
        return found

    def _redated(self, value: Any) -> Any:
        if isinstance(value, Instant):
            return value.shifted(self._seconds)
        if type(value) is tuple:
            moved = tuple(map(self.of, value))
            return value if all(new is old for new, old in zip(moved, value, strict=True)) else moved
        changes: dict[str, Any] = {}
        for name in TIMED.get(type(value), ()):
            before = getattr(value, name)
            after = before + self._seconds if isinstance(before, float | int) else self.of(before)
            if after is not before:
                changes[name] = after
        if isinstance(value, Overview) and value.clock_offset is not None:
            changes["clock_offset"] = value.clock_offset - self._seconds
        return replace(value, **changes) if changes else value


def by_one_clock(snapshot: Snapshot, before: Snapshot | None) -> Snapshot:
    """Return a snapshot with all its parts by the wall clock at which it was taken.

    Args:
        snapshot: may hold readings of before the clock was set.
        before: the snapshot before it, by the same clock. A reading that both hold stays the same.
    """
    changes: dict[str, Any] = {}
    for name in _PARTS:
        part: Part[Any] = getattr(snapshot, name)
        if part.at is None or not (seconds := snapshot.taken.wall_clock_step(part.at)):
            continue
        known: Part[Any] = getattr(before, name) if before is not None else Part()
        if known.at is not None and known.at.mono == part.at.mono:
            changes[name] = replace(part, at=known.at, value=known.value)
        else:
            changes[name] = Redating(seconds).of(part)
    return replace(snapshot, **changes) if changes else snapshot


def redated_result(result: DiagnosisResult, seconds: float) -> DiagnosisResult:
    """Return a result by a wall clock that was set by so many seconds; times in facts stay as they are."""
    return replace(
        result,
        at=_redated_text(result.at, seconds) or result.at,
        findings=tuple(_redated_finding(each, seconds) for each in result.findings),
        moment=None if result.moment is None else result.moment.shifted(seconds),
    )


def _redated_finding(finding: Finding, seconds: float) -> Finding:
    return replace(
        finding,
        since=_redated_text(finding.since, seconds),
        last_seen=_redated_text(finding.last_seen, seconds),
        over_since=_redated_text(finding.over_since, seconds),
        consequences=tuple(_redated_finding(each, seconds) for each in finding.consequences),
    )


def _redated_text(text: str | None, seconds: float) -> str | None:
    return None if text is None else iso(datetime.fromisoformat(text).timestamp() + seconds)
