"""Charts of the page "History". Pure; colours and style as in `minute_charts`."""

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ackscope.measures import Measure, measure
from dashboard.charts import minute_charts, theme
from dashboard.frames.history_frames import ChangeCurve
from dashboard.frames.minute_frames import Axis

INCREASE, DECREASE, FINDING = "#2F81C7", "#E08A00", "#C2185B"
_UNITS = {"rate": "per second", "seconds": "ms", "share": "%", "bytes": "MiB", "messages": "messages"}
_SCALE = {"seconds": 1000.0, "share": 100.0, "bytes": 1 / 1024**2}
_CURVE_HEIGHT = 170


def before_and_after(curves: Sequence[ChangeCurve], axis: Axis) -> go.Figure:
    """Curves of what changed, side by side: grey before the change, coloured after it, with the levels of both.

    Args:
        curves: at least one.
        axis: time axis of all of them.
    """
    figure = make_subplots(
        rows=1, cols=len(curves), horizontal_spacing=0.12, subplot_titles=[_curve_title(it.measure) for it in curves]
    )
    for column, curve in enumerate(curves, start=1):
        _add_curve(figure, curve, axis, column)
    theme.fixed_size(figure, _CURVE_HEIGHT, top=24)
    figure.update_layout(showlegend=False, hovermode="x")
    figure.update_xaxes(range=[axis.start, axis.end], tickformat="%H:%M", nticks=4, tickangle=0)
    figure.update_xaxes(hoverformat=f"%m-%d %H:%M {axis.zone}")
    figure.update_yaxes(nticks=4, rangemode="tozero", gridcolor=theme.GRID)
    figure.update_annotations(font={"size": 12}, xanchor="center")
    return figure


def _curve_title(name: str) -> str:
    what = measure(name)
    unit = _UNITS.get(what.unit, "")
    return what.words if not unit or unit in what.words else f"{what.words}, {unit}"


def _add_curve(figure: go.Figure, curve: ChangeCurve, axis: Axis, column: int) -> None:
    scale = _SCALE.get(measure(curve.measure).unit, 1.0)
    onset = datetime.fromtimestamp(curve.at, axis.start.tzinfo)
    # On an even axis a gap breaks the line.
    values = (curve.points * scale).tz_convert(axis.start.tzinfo)
    values = values.reindex(pd.date_range(values.index[0], values.index[-1], freq="min"))
    colour = FINDING if curve.shift is None else INCREASE if curve.shift.after > curve.shift.before else DECREASE
    first = values.index <= onset
    for mine, line in ((values[first], theme.OTHER), (values[values.index >= values[first].index.max()], colour)):
        figure.add_trace(
            go.Scatter(
                x=mine.index,
                y=mine,
                mode="lines",
                line={"width": 2, "color": line},
                connectgaps=False,
                hovertemplate="%{y:,.3g}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    if curve.shift is not None:
        levels = ((curve.shift.before, axis.start, onset), (curve.shift.after, onset, axis.end))
        for (level, begin, end), line in zip(levels, (theme.OTHER, colour), strict=True):
            figure.add_shape(
                type="line",
                x0=begin,
                x1=end,
                y0=level * scale,
                y1=level * scale,
                line={"color": line, "dash": "dash", "width": 1.2},
                row=1,
                col=column,
            )
    figure.add_vline(x=onset, line={"color": theme.OTHER, "dash": "dot", "width": 1.5}, row=1, col=column)


def band(lines: pd.DataFrame, axis: Axis, what: Measure) -> go.Figure:
    """One measure of a queue with its baseline band: `value`, `low`, `middle` (median) and `high`, by step."""
    shown = lines * _SCALE.get(what.unit, 1.0)
    figure = theme.time_figure(axis, height=300)
    # Two invisible lines with a fill between them; stepped, because a band is constant for a whole hour.
    for name, fill, line in (("high", None, 0), ("low", "tonexty", 0)):
        figure.add_trace(
            go.Scatter(
                x=shown.index,
                y=shown[name],
                name="usual at this hour" if name == "low" else "",
                showlegend=name == "low",
                mode="lines",
                line={"width": line, "color": minute_charts.READY, "shape": "hv"},
                fill=fill,
                fillcolor="rgba(86,180,233,0.25)",
                connectgaps=False,
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=shown.index,
            y=shown["middle"],
            name="median",
            mode="lines",
            line={"width": 1.2, "dash": "dash", "color": minute_charts.READY, "shape": "hv"},
            connectgaps=False,
            hovertemplate="%{y:,.3g}",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=shown.index,
            y=shown["value"],
            name="actual",
            mode="lines+markers",
            line={"width": 2, "color": minute_charts.UNACKED},
            marker={"size": 4},
            connectgaps=False,
            hovertemplate="%{y:,.3g}",
        )
    )
    outside = shown["value"].where((shown["value"] > shown["high"]) | (shown["value"] < shown["low"]))
    figure.add_trace(
        go.Scatter(
            x=shown.index,
            y=outside,
            name="outside",
            mode="markers",
            marker={"size": 10, "symbol": "diamond-open", "color": FINDING, "line": {"width": 2}},
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(title=_UNITS.get(what.unit, ""), rangemode="tozero")
    return theme.shade_gaps(figure, [shown[["value"]]], axis)
