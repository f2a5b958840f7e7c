"""Figures from shaped frames. Pure: no I/O, no Streamlit, no clock.

One colour has one meaning on the whole page, and the set is safe for colour-blind eyes (after Okabe and Ito);
what a colour says, a dash, a pattern or a word says too. Bars start at zero; a gap stays a gap and is shaded.
"""

import math
from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from dashboard.charts.theme import MS_TICKS, OTHER, drawing, per, shade
from dashboard.format.escape import plot_text
from dashboard.frames.minute_frames import Axis

QUEUE_TYPES = {"classic": "#2F81C7", "quorum": "#E08A00", "stream": "#009E73"}
OUTCOMES = {
    "acked": ("#8A94A0", ""),
    "nacked": ("#D55E00", "/"),
    "returned": ("#B8A000", "x"),
    "undecided": ("#7B61C9", "."),
    "lost": ("#C2185B", "-"),
}
READY, UNACKED, REDELIVERED = "#56B4E9", "#CC79A7", "#A6761D"


def latency(lines: pd.DataFrame, axis: Axis, queue_type: str, limits: tuple[float, float] | None) -> go.Figure:
    """Confirm latency of one queue type: p50, p99 and max on a logarithmic axis.

    `lines` holds `p50`, `p99` and `max` in seconds, by step. `limits` are the lowest and the highest value in
    seconds over all queue types, so that their charts compare.
    """
    colour = QUEUE_TYPES.get(queue_type, OTHER)
    figure = drawing(axis)
    for name, dash, width, symbol in (
        ("max", "dot", 1, "x"),
        ("p99", "solid", 2.5, "circle"),
        ("p50", "dash", 1.5, "circle-open"),
    ):
        figure.add_trace(
            go.Scatter(
                x=lines.index,
                y=lines[name] * 1000,
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": width},
                marker={"size": 4, "symbol": symbol},
                connectgaps=False,
                hovertemplate="%{y:,.3g} ms",
            )
        )
    figure.update_yaxes(
        type="log",
        title="log scale",
        tickvals=list(MS_TICKS),
        ticktext=list(MS_TICKS.values()),
        range=_log_range(limits),
    )
    return shade(figure, [lines], axis)


def outcomes(sums: pd.DataFrame, axis: Axis) -> go.Figure:
    """What became of probe messages: acked above, everything else below on its own axis, or it would not be seen."""
    figure = drawing(axis, rows=2, row_heights=[0.4, 0.6])
    for name, (colour, pattern) in OUTCOMES.items():
        bars = _bars(sums[name], axis, name, colour, pattern)
        bars.showlegend = bool(name == "acked" or sums[name].sum() > 0)
        figure.add_trace(bars, row=1 if name == "acked" else 2, col=1)
    figure.update_layout(barmode="stack")
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="acked", row=1, col=1)
    bad = sums.drop(columns=["messages", "acked"]).sum(axis=1).max()
    figure.update_yaxes(title="not acked", row=2, col=1, range=None if bad > 0 else [0, 1])
    return shade(figure, [sums], axis)


def batches(by_type: Mapping[str, pd.DataFrame], axis: Axis) -> go.Figure:
    """Messages that one burst of acks settles: mean as a line, the largest as marks."""
    figure = drawing(axis)
    for queue_type, shaped in by_type.items():
        colour, name = QUEUE_TYPES.get(queue_type, OTHER), plot_text(queue_type)
        figure.add_trace(
            go.Scatter(
                x=shaped.index,
                y=shaped["mean"],
                name=name,
                legendgroup=name,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"size": 4},
                connectgaps=False,
                hovertemplate="%{y:,.3g} messages",
            )
        )
        figure.add_trace(
            go.Scatter(
                x=shaped.index,
                y=shaped["max"],
                name=f"{name}, largest",
                legendgroup=name,
                showlegend=False,
                mode="markers",
                marker={"size": 5, "symbol": "x-thin", "line": {"color": colour, "width": 1.5}},
                hovertemplate="%{y:,.0f} messages",
            )
        )
    figure.update_yaxes(title="messages a burst", rangemode="tozero")
    return shade(figure, by_type.values(), axis)


def depth(by_queue: Mapping[tuple[str, str], pd.DataFrame], axis: Axis) -> go.Figure:
    """Ready and unacked messages of the deepest queues, one row a queue, each on its own axis."""
    titles = [plot_text(f"{queue}  (vhost {vhost})") for vhost, queue in by_queue]
    figure = drawing(axis, height=90 + 125 * max(len(titles), 1), rows=max(len(titles), 1), titles=titles)
    for row, shaped in enumerate(by_queue.values(), start=1):
        for name, colour, dash in (("ready", READY, "solid"), ("unacked", UNACKED, "dash")):
            figure.add_trace(
                go.Scatter(
                    x=shaped.index,
                    y=shaped[name],
                    name=name,
                    legendgroup=name,
                    showlegend=row == 1,
                    mode="lines+markers",
                    line={"color": colour, "width": 2, "dash": dash},
                    marker={"size": 3},
                    connectgaps=False,
                    hovertemplate="%{y:,.0f} messages",
                ),
                row=row,
                col=1,
            )
    figure.update_yaxes(title="messages", rangemode="tozero")
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    return shade(figure, by_queue.values(), axis)


def redelivered(sums: pd.DataFrame, axis: Axis) -> go.Figure:
    """Messages delivered more than once, over all queues."""
    figure = drawing(axis)
    figure.add_trace(_bars(sums["redelivered"], axis, "redelivered", REDELIVERED, ""))
    most = sums["redelivered"].max()
    figure.update_yaxes(title=f"messages {per(axis)}", rangemode="tozero", range=None if most > 0 else [0, 1])
    return shade(figure, [sums], axis)


def _bars(values: pd.Series, axis: Axis, name: str, colour: str, pattern: str) -> go.Bar:
    return go.Bar(
        x=values.index,
        y=values,
        name=name,
        offset=0,
        width=axis.step * 60_000 * 0.92,
        marker={"color": colour, "pattern": {"shape": pattern, "solidity": 0.35}, "line": {"width": 0}},
        hovertemplate="%{y:,.0f}",
    )


def _log_range(limits: tuple[float, float] | None) -> list[float] | None:
    """Limits in seconds as powers of ten of milliseconds, with room at both ends."""
    if limits is None or limits[0] <= 0:
        return None
    low, high = (math.log10(value * 1000) for value in limits)
    return [low - 0.15, high + 0.15]
