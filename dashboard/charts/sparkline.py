"""Sparklines as SVG without scripts: recent values of a metric over its baseline band. Pure.

Zero is at the bottom, time is linear, gaps stay gaps. The colours are visible on light and on dark; the text next to
the sparkline repeats what they say.
"""

from collections.abc import Sequence

from dashboard.data.model import Point

WIDTH, HEIGHT = 132, 34
LINE, OUTSIDE, BAND = "#2F81C7", "#C45500", "#8A94A0"
_MARGIN = 3.0
# Minimum width of the time axis, seconds.
_MIN_SECONDS = 60.0


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

    shapes = [f'<line x1="0" y1="{y(0):.1f}" x2="{WIDTH}" y2="{y(0):.1f}" stroke="{BAND}" stroke-width="0.7"/>']
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


def segments(line: Sequence[Point]) -> list[list[tuple[float, float]]]:
    """The parts of a series between its gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for ago, value in line:
        if value is None:
            found.append([])
        else:
            found[-1].append((ago, value))
    return [segment for segment in found if segment]
