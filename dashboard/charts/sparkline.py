"""Small lines as pictures that need no script: how a figure went lately, over the band that is usual. Pure.

Zero is at the bottom, time runs evenly, a gap stays a gap. The colours are read on light and on dark ground alike, and
what they say stands in words beside the picture.
"""

from collections.abc import Sequence

from dashboard.data.model import Point

WIDTH, HEIGHT = 132, 34
LINE, OUTSIDE, BAND = "#2F81C7", "#C45500", "#8A94A0"
_EDGE = 3.0
_LEAST = 60.0
"""Seconds that a picture spans at least."""


def spark(line: Sequence[Point], usual: tuple[float, float] | None = None, *, outside: bool = False) -> str | None:
    """The picture as SVG; None where there are not two points to join.

    Args:
        line: (seconds ago, value), oldest first; a value that is None ends a stretch.
        usual: the edges of the band.
        outside: the latest value is: it is marked.
    """
    told = [value for _, value in line if value is not None]
    if len(told) < 2:
        return None
    longest = max(_LEAST, line[0][0])
    top = max(*told, usual[1] if usual else 0.0) or 1.0

    def x(ago: float) -> float:
        return _EDGE + (WIDTH - 2 * _EDGE) * (1 - ago / longest)

    def y(value: float) -> float:
        return HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * max(0.0, value) / top

    drawn = [f'<line x1="0" y1="{y(0):.1f}" x2="{WIDTH}" y2="{y(0):.1f}" stroke="{BAND}" stroke-width="0.7"/>']
    if usual:
        low, high = y(usual[0]), y(usual[1])
        drawn.append(
            f'<rect x="0" y="{high:.1f}" width="{WIDTH}" height="{max(1.0, low - high):.1f}" '
            f'fill="{BAND}" fill-opacity="0.3" stroke="none"/>'
        )
    for stretch in _stretches(line):
        points = " ".join(f"{x(ago):.1f},{y(value):.1f}" for ago, value in stretch)
        # A point between two gaps is a line of no length: round ends make it a dot.
        points = points if len(stretch) > 1 else f"{points} {points}"
        drawn.append(f'<polyline points="{points}"/>')
    ago, last = _stretches(line)[-1][-1]
    colour = OUTSIDE if outside else LINE
    drawn.append(f'<circle cx="{x(ago):.1f}" cy="{y(last):.1f}" r="2.6" fill="{colour}" stroke="none"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="none" stroke="{LINE}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">'
        f"{''.join(drawn)}</svg>"
    )


def _stretches(line: Sequence[Point]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for ago, value in line:
        if value is None:
            found.append([])
        else:
            found[-1].append((ago, value))
    return [stretch for stretch in found if stretch]
