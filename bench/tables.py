"""Tables in 80 columns, and statistics and number formats that they share."""

import math
from collections.abc import Sequence

WIDTH = 80


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table. The first column is left-aligned, all others right-aligned.

    Raises:
        ValueError: the table does not fit into 80 columns; the caller must fix it.
    """
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [_line(row, widths) for row in (head, *rows)]
    lines.insert(1, "-" * len(lines[0]))
    if any(len(line) > WIDTH for line in lines):
        raise ValueError(f"a table of {max(len(line) for line in lines)} columns")
    return lines


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
    return "  ".join(cells)


def wrap(text: str, indent: str = "") -> list[str]:
    """Wrap a paragraph to 80 columns; lines after the first begin with `indent`."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = f"{indent}{word}"
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return a quantile (nearest rank) of values in any order, or None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float | None]) -> float | None:
    """Return the median of the values that are not None, or None if there are none."""
    there = sorted(value for value in values if value is not None)
    if not there:
        return None
    half = len(there) // 2
    return there[half] if len(there) % 2 else (there[half - 1] + there[half]) / 2


def ms(seconds: float | None) -> str:
    """Format as milliseconds: three digits after the point below 10 ms, else one."""
    if seconds is None:
        return "-"
    value = seconds * 1000
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def us(seconds: float | None) -> str:
    """Format a difference as whole microseconds with a sign."""
    return "-" if seconds is None else f"{seconds * 1e6:+.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share as a percentage."""
    return "-" if share is None else f"{share * 100:.{digits}f} %"
