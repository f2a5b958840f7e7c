"""Charts of one queue. Pure; colours and style as in `minute_charts`."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dashboard.charts import minute_charts, theme
from dashboard.charts.history_charts import FINDING
from dashboard.format.escape import plot_text
from dashboard.frames import queue_history
from dashboard.frames.minute_frames import Axis
from dashboard.frames.queue_history import ChartMark

PUBLISHED, DELIVERED, ACKED = "#2F81C7", "#7B61C9", "#009E73"
_LINES = {
    "published": (1, PUBLISHED, "solid"),
    "delivered": (1, DELIVERED, "dot"),
    "acked": (1, ACKED, "solid"),
    "redelivered": (1, minute_charts.REDELIVERED, "dash"),
    "ready": (2, "#0072B2", "solid"),
    "unacked": (2, minute_charts.UNACKED, "dash"),
    "consumers": (3, theme.OTHER, "solid"),
}
"""Measure -> row of the figure, colour and dash."""
BANDED = ("published", "ready")
"""Measures whose band is drawn: one per row, as more would cover each other."""
_UNITS = {1: "msg/s", 2: "messages", 3: "consumers"}
_LABELLED = 4
"""Marks with a label; the text of the others shows on hover."""


def history(
    series: Mapping[str, pd.Series],
    bands: Mapping[str, pd.DataFrame],
    marks: Sequence[ChartMark],
    axis: Axis,
    height: int = 300,
) -> go.Figure:
    """Rates, backlog and consumers of a queue below each other, with usual bands and marks.

    Args:
        series: result of `queue_history.series`.
        bands: result of `queue_history.bands`.
        marks: findings, consumers and notes.
        axis: time axis.
        height: in pixels.
    """
    figure = theme.time_figure(axis, height=height, rows=3, row_heights=[0.42, 0.36, 0.22])
    figure.update_layout(margin={"t": 34})
    for measure in BANDED:
        if measure in bands:
            _add_band(figure, bands[measure], measure)
    for measure, (row, colour, dash) in _LINES.items():
        values = series[measure]
        figure.add_trace(
            go.Scatter(
                x=values.index,
                y=values,
                name=measure,
                # A value between two gaps is a point.
                mode="lines+markers" if values.notna().sum() < 40 else "lines",
                line={"color": colour, "dash": dash, "width": 2, "shape": "hv" if measure == "consumers" else "linear"},
                marker={"size": 4},
                connectgaps=False,
                showlegend=measure != "consumers",
                hovertemplate="%{y:,.0f}" if row > 1 else "%{y:,.2f}/s",
            ),
            row=row,
            col=1,
        )
    for row, unit in _UNITS.items():
        most = max((series[name].max() for name, line in _LINES.items() if line[0] == row), default=float("nan"))
        figure.update_yaxes(
            title={"text": unit, "font": {"size": 11}},
            rangemode="tozero",
            range=None if most > 0 else [0, 1],
            nticks=3 if row == 3 else 4,
            row=row,
            col=1,
        )
    theme.shade_gaps(figure, [queue_history.coverage(series, axis)], axis)
    _add_marks(figure, marks, axis)
    return figure


def _add_band(figure: go.Figure, lines: pd.DataFrame, measure: str) -> None:
    row, colour, _ = _LINES[measure]
    for name, fill in (("high", None), ("low", "tonexty")):
        figure.add_trace(
            go.Scatter(
                x=lines.index,
                y=lines[name].clip(lower=0),
                name=f"usual {measure}",
                legendgroup=f"usual {measure}",
                showlegend=name == "low",
                mode="lines",
                line={"width": 0, "color": colour, "shape": "hv"},
                fill=fill,
                fillcolor=theme.faint(colour),
                connectgaps=False,
                hoverinfo="skip",
            ),
            row=row,
            col=1,
        )


def _add_marks(figure: go.Figure, marks: Sequence[ChartMark], axis: Axis) -> None:
    """Findings and notes as lines through all rows, with labels; consumers that changed as marks in their row."""
    labelled = 0
    lines = []
    for mark in marks:
        if mark.kind == queue_history.CONSUMERS:
            continue
        colour = FINDING if mark.kind in {queue_history.FINDING, queue_history.ENDED} else theme.OTHER
        dash = "solid" if mark.kind == queue_history.FINDING else "dot"
        style = {"color": colour, "width": 1.5, "dash": dash}
        lines.append(theme.upright(mark.at, mark.at, type="line", line=style, layer="above"))
        if labelled < _LABELLED:
            figure.add_annotation(
                x=mark.at,
                y=1.0,
                yref="paper",
                yanchor="top",
                yshift=-12 * (labelled % 3),
                xanchor="right" if mark.at > axis.start + (axis.end - axis.start) / 2 else "left",
                text=plot_text(mark.text, 26),
                showarrow=False,
                font={"size": 11},
            )
            labelled += 1
    theme.add_upright(figure, lines)
    changes = [mark for mark in marks if mark.kind == queue_history.CONSUMERS]
    if changes:
        figure.add_trace(
            go.Scatter(
                x=[mark.at for mark in changes],
                y=[0] * len(changes),
                name="consumers changed",
                mode="markers",
                marker={"symbol": "triangle-up", "size": 9, "color": "#D55E00"},
                text=[plot_text(mark.text, 80) for mark in changes],
                hovertemplate="%{text}<extra></extra>",
            ),
            row=3,
            col=1,
        )


def prefetch_bars(rows: pd.DataFrame) -> go.Figure:
    """Unacked messages of each channel as bars, with its prefetch as the ceiling; `rows` are `prefetch_rows`."""
    figure = go.Figure()
    names = [plot_text(f"{number}. {who}", 30) for number, who in enumerate(rows["who"], start=1)]
    limited = rows["ceiling"].notna().to_numpy()
    full = (rows["unacked"] >= rows["ceiling"]).to_numpy()
    figure.add_trace(
        go.Bar(
            x=rows["unacked"],
            y=names,
            orientation="h",
            name="unacked",
            marker=theme.striped(
                ["#D55E00" if each else minute_charts.UNACKED for each in full],
                ["" if each else "/" for each in limited],
            ),
            text=[_bar_text(row) for row in rows.to_dict("records")],
            textposition="auto",
            insidetextfont={"color": theme.INK},
            customdata=[plot_text(who, 200) for who in rows["tags"]],
            hovertemplate="%{text}<br>%{customdata}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=rows["ceiling"],
            y=names,
            name="prefetch (ceiling)",
            mode="markers",
            marker={"symbol": "line-ns", "size": 20, "line": {"width": 3, "color": theme.OTHER}},
            hovertemplate="prefetch %{x:,.0f}<extra></extra>",
            showlegend=False,
        )
    )
    theme.fixed_size(figure, 46 + 26 * max(len(names), 1), top=4)
    most = max(rows["unacked"].max(), rows["ceiling"].max() if limited.any() else 0, 1)
    figure.update_xaxes(range=[0, most * 1.08], nticks=5)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    figure.update_layout(bargap=0.35)
    return figure


def _bar_text(row: Mapping[Hashable, Any]) -> str:
    unacked, ceiling = row["unacked"], row["ceiling"]
    shown = "unknown" if pd.isna(unacked) else f"{unacked:,.0f}"
    return f"{shown}, {row['why']}" if pd.isna(ceiling) else f"{shown} of {ceiling:,.0f}"
