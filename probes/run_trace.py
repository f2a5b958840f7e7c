"""Draws a run over time as a text chart: longest response of each time slice, and messages that were not acked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ackscope.records import Outcome
from probes.self_error import duration

COLUMNS = 60
"""Maximum number of time slices."""

_FIRST_WIDTH = 0.05
_ROWS = 5
_MARKS = {Outcome.NACKED: "n", Outcome.RETURNED: "r", Outcome.TIMED_OUT: "u", Outcome.LOST: "l"}
_BLOCKED = "b"
_LETTERS = "nacked n, returned r, undecided u, lost l, blocked b"
_WORST_FIRST = "lunrb"


@dataclass(slots=True)
class TraceSlice:
    """A time slice of a run.

    Attributes:
        longest: longest response of a message scheduled in it, in seconds; None if none was settled.
        marks: letters of outcomes other than ack, and of blocked time.
    """

    longest: float | None = None
    marks: set[str] = field(default_factory=set)

    def merge(self, other: "TraceSlice") -> "TraceSlice":
        """Merge two slices."""
        known = [value for value in (self.longest, other.longest) if value is not None]
        return TraceSlice(max(known, default=None), self.marks | other.marks)


class RunTrace:
    """A run in at most `COLUMNS` time slices of equal width. The width doubles when they are full."""

    def __init__(self) -> None:
        self.width = _FIRST_WIDTH
        self._start: float | None = None
        self._stretches: list[TraceSlice] = []

    @property
    def stretches(self) -> Sequence[TraceSlice]:
        """All slices since the start."""
        return self._stretches

    def message(self, intended: float, response: float | None, outcome: Outcome) -> None:
        """Add a message at its scheduled time, in monotonic seconds."""
        stretch = self._at(intended)
        if response is not None:
            stretch.longest = max(stretch.longest or 0.0, response)
        if outcome in _MARKS:
            stretch.marks.add(_MARKS[outcome])

    def blocked(self, since: float, until: float) -> None:
        """Add a period under connection.blocked."""
        last = self._index(until)
        for index in range(self._index(since), last + 1):
            self._get(index).marks.add(_BLOCKED)

    def document(self) -> list[dict[str, Any]]:
        """Return the slices with data as JSON: seconds since the start, longest response, other outcomes."""
        return [
            {"at": index * self.width, "longest": stretch.longest, "marks": "".join(sorted(stretch.marks))}
            for index, stretch in enumerate(self._stretches)
            if stretch.longest is not None or stretch.marks
        ]

    def lines(self, indent: int = 2) -> list[str]:
        """Return the lines of the chart; empty if nothing was settled."""
        values = [stretch.longest for stretch in self._stretches]
        known = [value for value in values if value is not None]
        if len(values) < 2 or not known:
            return []
        left = " " * indent
        lines = [f"{left}response, longest per {duration(self.width)} of scheduled send time"]
        edges = _edges(min(known), max(known))
        for row, edge in enumerate(reversed(edges)):
            below = edges[-row - 2] if row < len(edges) - 1 else -1.0
            cells = "".join("#" if value is not None and value > below else " " for value in values)
            lines.append(f"{left}{duration(edge):>9} |{cells}".rstrip())
        end = f"{self.width * len(values):.3g} s"
        axis = f"{left}{'':>9} 0{end:>{max(len(end) + 1, len(values) - 1)}}"
        if any(stretch.marks for stretch in self._stretches):
            cells = "".join(_letter(stretch.marks) for stretch in self._stretches)
            lines += [f"{left}{'not acked':>9} |{cells}".rstrip(), axis, f"{left}{_LETTERS}"]
        else:
            lines.append(axis)
        return lines

    def _at(self, time: float) -> TraceSlice:
        return self._get(self._index(time))

    def _index(self, time: float) -> int:
        if self._start is None:
            self._start = time
        while (index := int(max(0.0, time - self._start) / self.width)) >= COLUMNS:
            self._halve()
        return index

    def _get(self, index: int) -> TraceSlice:
        while len(self._stretches) <= index:
            self._stretches.append(TraceSlice())
        return self._stretches[index]

    def _halve(self) -> None:
        if len(self._stretches) % 2:
            self._stretches.append(TraceSlice())
        pairs = zip(self._stretches[::2], self._stretches[1::2], strict=True)
        self._stretches = [first.merge(second) for first, second in pairs]
        self.width *= 2


def _letter(marks: set[str]) -> str:
    return next((letter for letter in _WORST_FIRST if letter in marks), " ")


def _edges(least: float, most: float) -> list[float]:
    """Return the upper edges of the rows. The scale is logarithmic if the values differ much."""
    low, high = max(least, 1e-6), max(most, 2e-6)
    if high < 1.5 * low:
        return [high]
    step = (math.log(high) - math.log(low)) / (_ROWS - 1)
    return [low * math.exp(step * row) for row in range(_ROWS - 1)] + [high]
