"""Sparklines as SVG without scripts: recent values of a metric, and over its baseline band. Pure.

Zero is at the bottom, time is linear, gaps stay gaps: nothing is drawn in them, not even the line of zero. The colours
are visible on light and on dark; the text next to the sparkline repeats what they say.
"""

from collections.abc import Sequence
from urllib.parse import quote

from dashboard.data.model import Point

WIDTH, HEIGHT = 132, 34
LINE, OUTSIDE, BAND, TEXT = "#2F81C7", "#C45500", "#8A94A0", "#7A8591"
QUEUE_SECONDS, CHANNEL_SECONDS, CLUSTER_SECONDS = 600.0, 180.0, 1800.0
"""Length of the sparkline of a queue, a channel and a cluster in a table, as the exporter holds their readings."""
_MARGIN = 3.0
# Minimum width of the time axis, seconds.
_MIN_SECONDS = 60.0
_CELL_WIDTH, _CELL_HEIGHT = 70, 24
LOW_ROWS = 170
"""Width of a sparkline for rows of 23 pixels, which draw it half as high."""
# Without these characters escaped, a browser does not read the picture in an address.
_PLAIN = " =:/,.-'()"


def sparkline(line: Sequence[Point], band: tuple[float, float] | None = None, *, outside: bool = False) -> str | None:
    """The sparkline as SVG; None if there are fewer than two values.

    Args:
        line: (seconds ago, value), oldest first; None is a gap.
        band: lower and upper edge of the baseline band.
        outside: mark the latest value as outside the band.
    """
    values = [value for _, value in line if value is not None]
    if len(values) < 2:
        return None
    seconds = max(_MIN_SECONDS, line[0][0])
    top = max(*values, band[1] if band else 0.0) or 1.0

    def x(ago: float) -> float:
        return _MARGIN + (WIDTH - 2 * _MARGIN) * (1 - ago / seconds)

    def y(value: float) -> float:
        return HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * max(0.0, value) / top

    shapes = [
        f'<line x1="{x(segment[0][0]):.1f}" y1="{y(0):.1f}" x2="{x(segment[-1][0]):.1f}" y2="{y(0):.1f}" '
        f'stroke="{BAND}" stroke-width="0.7"/>'
        for segment in segments(line)
    ]
    if band:
        low, high = y(band[0]), y(band[1])
        shapes.append(
            f'<rect x="0" y="{high:.1f}" width="{WIDTH}" height="{max(1.0, low - high):.1f}" '
            f'fill="{BAND}" fill-opacity="0.3" stroke="none"/>'
        )
    for segment in segments(line):
        points = " ".join(f"{x(ago):.1f},{y(value):.1f}" for ago, value in segment)
        # A point between two gaps is a line of length zero: the round line caps make it a dot.
        points = points if len(segment) > 1 else f"{points} {points}"
        shapes.append(f'<polyline points="{points}"/>')
    ago, last = segments(line)[-1][-1]
    colour = OUTSIDE if outside else LINE
    shapes.append(f'<circle cx="{x(ago):.1f}" cy="{y(last):.1f}" r="2.6" fill="{colour}" stroke="none"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="none" stroke="{LINE}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">'
        f"{''.join(shapes)}</svg>"
    )


def cell(line: Sequence[Point], seconds: float, width: int = _CELL_WIDTH) -> str:
    """A sparkline for a cell of a table, as the address of a picture (`data:`); it says so if there is no value.

    Args:
        line: (seconds ago, value), oldest first; None is a gap.
        seconds: length of the time axis; older points are left out.
        width: pixels at a height of 24. A table scales the picture to the height of its rows: low rows need a wide one.
    """
    parts = segments([(ago, value) for ago, value in line if ago <= seconds])
    if not parts:
        return _address(
            f"<text x='{width / 2:.0f}' y='16' font-family='sans-serif' font-size='{11 if width < LOW_ROWS else 15}' "
            f"text-anchor='middle' fill='{TEXT}'>no data</text>",
            width,
        )
    top = max(value for part in parts for _, value in part) or 1.0

    def x(ago: float) -> str:
        return f"{2 + (width - 4) * (1 - ago / seconds):.0f}"

    def y(value: float) -> str:
        return f"{_CELL_HEIGHT - 3 - (_CELL_HEIGHT - 6) * max(0.0, value) / top:.0f}"

    zero = "".join(f"M{x(part[0][0])} {y(0)}H{x(part[-1][0])}" for part in parts)
    # A part of one point has a length of zero: the round line caps make it a dot.
    drawn = "".join(
        f"M{'L'.join(f'{x(ago)} {y(value)}' for ago, value in (part if len(part) > 1 else part * 2))}" for part in parts
    )
    return _address(
        f"<path d='{zero}' fill='none' stroke='{BAND}'/>"
        f"<path d='{drawn}' fill='none' stroke='{LINE}' stroke-width='{1.6 if width < LOW_ROWS else 2.6}' "
        "stroke-linecap='round'/>",
        width,
    )


def _address(shapes: str, width: int) -> str:
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{_CELL_HEIGHT}'>{shapes}</svg>"
    return f"data:image/svg+xml,{quote(picture, safe=_PLAIN)}"


def total(*lines: Sequence[Point]) -> list[Point]:
    """The sum of series with readings at the same times; None where one of them is unknown, empty if one is missing."""
    by_time = [dict(line) for line in lines]
    return [
        (ago, None if None in values else sum(value for value in values if value is not None))
        for ago in by_time[0]
        if all(ago in known for known in by_time)
        for values in [[known[ago] for known in by_time]]
    ]


def segments(line: Sequence[Point]) -> list[list[tuple[float, float]]]:
    """The parts of a series between its gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for ago, value in line:
        if value is None:
            found.append([])
        else:
            found[-1].append((ago, value))
    return [segment for segment in found if segment]
