"""Curves that prove a finding, with the moment it began: HTML without scripts and without foreign text. Pure.

Zero is at the bottom, time is linear, gaps stay gaps. The colours are visible on light and on dark.
"""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from dashboard.charts.sparkline import BAND, LINE, OUTSIDE, segments
from dashboard.data.model import MetricSeries
from dashboard.format import readable, vital_metrics

_WIDTH, _HEIGHT = 240.0, 64.0
_MARGIN = 4.0
_MIN_SECONDS = 60.0


def curves(lines: Sequence[MetricSeries], began_ago: float | None, began: str) -> str:
    """The curves next to each other.

    Args:
        lines: series with at least two values, whose names are in `vital_metrics.LABELS`.
        began_ago: how many seconds ago the finding began; None if unknown.
        began: that moment as text, such as `12:04:10 UTC`.
    """
    return f'<div class="curves">{"".join(_curve(line, began_ago, began) for line in lines)}</div>'


def _curve(line: MetricSeries, began_ago: float | None, began: str) -> str:
    seconds = max(_MIN_SECONDS, line.line[0][0])
    inside = began_ago is not None and began_ago <= seconds
    mark = "" if began_ago is None else f"began {began}" if inside else f"began before, {began}"
    text = vital_metrics.trend_text(line)
    title = f"{vital_metrics.LABELS[line.name]} <b>{vital_metrics.value_text(line)}</b>"
    picture = b64encode(_picture(line, seconds, began_ago if inside else None).encode()).decode()
    return (
        f"<figure><figcaption>{title}</figcaption>"
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{escape("; ".join(filter(None, (text, mark))))}">'
        f'<div class="axis"><span>{escape(readable.duration(seconds))} ago</span>'
        f"<span>{escape(mark)}</span><span>now</span></div></figure>"
    )


def _picture(line: MetricSeries, seconds: float, began_ago: float | None) -> str:
    top = max(value for _, value in line.line if value is not None) or 1.0

    def x(ago: float) -> float:
        return _MARGIN + (_WIDTH - 2 * _MARGIN) * (1 - ago / seconds)

    def y(value: float) -> float:
        return _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * max(0.0, value) / top

    # The line of zero only where there are values: a gap is not zero.
    shapes = [
        f'<line x1="{x(segment[0][0]):.1f}" y1="{y(0):.1f}" x2="{x(segment[-1][0]):.1f}" y2="{y(0):.1f}" '
        f'stroke="{BAND}" stroke-width="1"/>'
        for segment in segments(line.line)
    ]
    if began_ago is not None:
        at = x(began_ago)
        shapes.append(
            f'<rect x="{at:.1f}" y="0" width="{_WIDTH - at:.1f}" height="{_HEIGHT:.0f}" fill="{OUTSIDE}" '
            f'fill-opacity="0.12" stroke="none"/><line x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{_HEIGHT:.0f}" '
            f'stroke="{OUTSIDE}" stroke-width="1.5" stroke-dasharray="4 3"/>'
        )
    for segment in segments(line.line):
        points = " ".join(f"{x(ago):.1f},{y(value):.1f}" for ago, value in segment)
        points = points if len(segment) > 1 else f"{points} {points}"
        shapes.append(f'<polyline points="{points}" stroke="{LINE}" stroke-width="2"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}" '
        f'viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none" fill="none" '
        f'stroke-linecap="round" stroke-linejoin="round">{"".join(shapes)}</svg>'
    )
