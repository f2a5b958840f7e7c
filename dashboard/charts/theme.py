"""The common style of all figures: size and margins, the time axis, and shaded gaps. Pure.

Background and text have no colour here: the page sets those of its light or dark theme, also in a saved picture.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import Axis

OTHER = "#8A94A0"
"""Grey for everything without a colour of its own and for gaps; visible on light and on dark."""
GRID = "rgba(138,148,160,0.3)"

HEIGHT = 260

LEGEND = {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top", "traceorder": "normal"}

MS_TICKS = {
    0.01: "10 µs",
    0.1: "0.1 ms",
    1: "1 ms",
    10: "10 ms",
    100: "100 ms",
    1_000: "1 s",
    10_000: "10 s",
    100_000: "100 s",
}
"""Milliseconds -> label, for every latency axis."""


INK = "#000000"
"""Text on bars: black is readable on every colour of these charts, in the light and in the dark theme."""


def striped(colour: str | list[str], shape: str | list[str]) -> dict[str, object]:
    """A marker of bars: the full colour, and a pattern in a darker shade of it that text stays readable on."""
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": INK, "fgopacity": 0.22, "solidity": 0.25, "size": 7}
    return {"color": colour, "pattern": pattern, "line": {"width": 0}}


def faint(colour: str, opacity: float = 0.18) -> str:
    """A colour `#rrggbb` as the filling of an area."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def fixed_size(figure: go.Figure, height: int, *, top: int = 28) -> go.Figure:
    """Set the height, a legend on top and no zoom; `top` is the space for the legend. Both are in pixels."""
    figure.update_layout(height=height, margin={"l": 0, "r": 8, "t": top, "b": 0}, dragmode=False, legend=LEGEND)
    figure.update_xaxes(fixedrange=True, automargin=True)
    figure.update_yaxes(fixedrange=True, automargin=True)
    return figure


def time_figure(
    axis: Axis,
    *,
    height: int = HEIGHT,
    rows: int = 1,
    row_heights: list[float] | None = None,
    titles: list[str] | None = None,
) -> go.Figure:
    """An empty figure with this time axis and `rows` subplots below each other."""
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=True,
        row_heights=row_heights,
        subplot_titles=titles or None,
        vertical_spacing=0.08 if rows < 3 else 0.22 / rows,
    )
    fixed_size(figure, height, top=50 if titles else 28)
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(nticks=5)
    return set_time_axis(figure, axis, row=rows)


def set_time_axis(figure: go.Figure, axis: Axis, row: int | None = None) -> go.Figure:
    """Make the horizontal axis a time axis; zone and date are in its title, below the last `row`."""
    figure.update_xaxes(nticks=7, tickangle=0, **time_range(axis))
    figure.update_xaxes(title=span_title(axis), row=row, col=None if row is None else 1)
    return figure


def time_range(axis: Axis) -> dict[str, object]:
    """The range of a time axis, and how its times are written."""
    day = "" if _last(axis).date() == axis.start.date() else "%m-%d "
    return {"range": [axis.start, axis.end], "hoverformat": f"{day}%H:%M {axis.zone}", "tickformat": "%H:%M"}


def span_title(axis: Axis) -> str:
    """Zone and dates of an axis: `UTC, 2026-03-01`."""
    first, last = axis.start.date(), _last(axis).date()
    note = " (fixed offset: clock change in this range)" if axis.clock_change else ""
    return f"{axis.zone}{note}, {first}" + (f" to {last}" if last != first else "")


def _last(axis: Axis) -> pd.Timestamp:
    return pd.Timestamp(axis.end - timedelta(minutes=1))


def per_step(axis: Axis) -> str:
    """The interval of one point: `per minute` or `per 10 min`."""
    return "per minute" if axis.step == 1 else f"per {axis.step} min"


def shade_gaps(figure: go.Figure, shaped: Iterable[pd.DataFrame], axis: Axis) -> go.Figure:
    """Shade the time ranges without data, and label the longer ones."""
    whole = axis.end - axis.start
    gaps = list(minute_frames.gaps(shaped, axis))
    add_upright(figure, [upright(start, end, fillcolor=OTHER, opacity=0.13) for start, end in gaps])
    for start, end in gaps:
        labelled = (end - start).total_seconds() > 0.15 * whole.total_seconds()
        if labelled:
            figure.add_annotation(
                x=start + (end - start) / 2,
                y=0.5,
                xref="x",
                yref="paper",
                text="no data",
                showarrow=False,
            )
    return figure


def upright(start: object, end: object, **style: object) -> dict[str, object]:
    """A rectangle from `start` to `end` over the height of a chart, below its curves; see `add_upright`."""
    return {"type": "rect", "x0": start, "x1": end, "y0": 0, "y1": 1, "line": {"width": 0}, "layer": "below", **style}


def add_upright(figure: go.Figure, shapes: Iterable[Mapping[str, object]]) -> None:
    """Add shapes to all charts of a figure at once: one by one is slow in Plotly."""
    names = sorted(name for name in figure.layout if name.startswith("xaxis")) or ["xaxis"]
    numbers = [name.removeprefix("xaxis") for name in names]
    placed = [{**shape, "xref": f"x{number}", "yref": f"y{number} domain"} for shape in shapes for number in numbers]
    if placed:
        figure.layout.shapes = (*figure.layout.shapes, *placed)
