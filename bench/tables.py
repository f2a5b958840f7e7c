"""Tables in 80 columns, and the few figures that every one of them holds."""

import math
from collections.abc import Sequence

WIDTH = 80


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, all others to the right.

    Raises:
        ValueError: it does not fit into 80 columns, which is a mistake of who made it.
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
    """A paragraph in 80 columns; lines after the first begin with `indent`."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = f"{indent}{word}"
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that `share` of them do not exceed (nearest rank); None of none. `values` need not be in order."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float | None]) -> float | None:
    """The middle of those that are there, the mean of the two middle ones where they are even; None of none."""
    there = sorted(value for value in values if value is not None)
    if not there:
        return None
    half = len(there) // 2
    return there[half] if len(there) % 2 else (there[half - 1] + there[half]) / 2


def ms(seconds: float | None) -> str:
    """Milliseconds, with as many digits as there is room for."""
    if seconds is None:
        return "-"
    value = seconds * 1000
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def us(seconds: float | None) -> str:
    """Whole microseconds, with a sign: a difference."""
    return "-" if seconds is None else f"{seconds * 1e6:+.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share of one as per cent."""
    return "-" if share is None else f"{share * 100:.{digits}f} %"
