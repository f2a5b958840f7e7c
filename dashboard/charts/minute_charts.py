"""Charts of the minute rollups. Pure: no I/O, no Streamlit, no clock.

A colour has one meaning on the whole dashboard. The palette is safe for colour-blind people (after Okabe and Ito), and
a dash, pattern or word repeats what a colour says. Bars start at zero; gaps in the data stay gaps and are shaded.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
import plotly.graph_objects as go

from dashboard.charts.theme import MS_TICKS, OTHER, per_step, shade_gaps, striped, time_figure
from dashboard.data.rollups import MinuteHistory
from dashboard.format.escape import plot_text
from dashboard.frames import minute_frames
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCharts:
    """All charts of the recent history on the page "Now"; shared between viewers, so no figure may be changed.

    Attributes:
        problem: why the history cannot be read.
        has_history: the cluster has any history, from any time.
        latency: by queue type.
        others: by name of the chart; without "depth" if no queue had a message.
    """

    problem: str | None = None
    has_history: bool = True
    latency: Mapping[str, go.Figure] = field(default_factory=dict)
    others: Mapping[str, go.Figure] = field(default_factory=dict)


def recent_charts(history: MinuteHistory, axis: Axis) -> RecentCharts:
    """Draw all charts; none if there is no data in this time range."""
    nothing = all(each.empty for each in (history.latency, history.outcomes, history.bursts, history.redelivered))
    if history.problem is not None or nothing:
        return RecentCharts(problem=history.problem, has_history=history.exists)
    streams = minute_frames.streams(history.bursts)
    others = {
        "outcomes": outcomes(minute_frames.outcomes(history.outcomes, axis), axis),
        "batches": batches({name: minute_frames.batches(history.bursts, axis, name) for name in streams}, axis),
        "redelivered": redelivered(minute_frames.redelivered(history.redelivered, axis), axis),
    }
    deepest = minute_frames.depth(history.depth, axis)
    if deepest:
        others["depth"] = depth(deepest, axis)
    return RecentCharts(has_history=history.exists, latency=_latency_by_type(history, axis), others=others)


def _latency_by_type(history: MinuteHistory, axis: Axis) -> dict[str, go.Figure]:
    """One chart per queue type, all with the same scale."""
    streams = minute_frames.streams(history.latency)
    shaped = {name: minute_frames.latency(history.latency, axis, name) for name in streams}
    low = min((float(item["p50"].min()) for item in shaped.values()), default=0.0)
    high = max((float(item["max"].max()) for item in shaped.values()), default=0.0)
    limits = (low, high) if 0 < low <= high else None
    return {name: latency(lines, axis, name, limits) for name, lines in shaped.items()}


def latency(lines: pd.DataFrame, axis: Axis, queue_type: str, limits: tuple[float, float] | None) -> go.Figure:
    """Confirm latency of one queue type: p50, p99 and max on a logarithmic axis.

    Args:
        lines: `p50`, `p99` and `max` in seconds, by step.
        axis: time axis.
        queue_type: sets the colour.
        limits: lowest and highest value over all queue types in seconds, for a common scale.
    """
    colour = QUEUE_TYPES.get(queue_type, OTHER)
    figure = time_figure(axis)
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
    return shade_gaps(figure, [lines], axis)


def outcomes(sums: pd.DataFrame, axis: Axis) -> go.Figure:
    """Outcomes of probe messages: acked on top, the others below on a scale of their own, where they are visible."""
    figure = time_figure(axis, rows=2, row_heights=[0.4, 0.6])
    for name, (colour, pattern) in OUTCOMES.items():
        bars = _bars(sums[name], axis, name, colour, pattern)
        bars.showlegend = bool(name == "acked" or sums[name].sum() > 0)
        figure.add_trace(bars, row=1 if name == "acked" else 2, col=1)
    figure.update_layout(barmode="stack")
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="acked", row=1, col=1)
    bad = sums.drop(columns=["messages", "acked"]).sum(axis=1).max()
    figure.update_yaxes(title="not acked", row=2, col=1, range=None if bad > 0 else [0, 1])
    return shade_gaps(figure, [sums], axis)


def batches(by_type: Mapping[str, pd.DataFrame], axis: Axis) -> go.Figure:
    """Messages confirmed by one burst of acks: the mean as a line, the largest burst as marks."""
    figure = time_figure(axis)
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
    figure.update_yaxes(title="messages per burst", rangemode="tozero")
    return shade_gaps(figure, by_type.values(), axis)


def depth(by_queue: Mapping[tuple[str, str], pd.DataFrame], axis: Axis) -> go.Figure:
    """Ready and unacked messages of the deepest queues, one subplot per queue, each with its own scale."""
    titles = [plot_text(f"{queue}  (vhost {vhost})") for vhost, queue in by_queue]
    figure = time_figure(axis, height=90 + 125 * max(len(titles), 1), rows=max(len(titles), 1), titles=titles)
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
    return shade_gaps(figure, by_queue.values(), axis)


def redelivered(sums: pd.DataFrame, axis: Axis) -> go.Figure:
    """Redelivered messages over all queues."""
    figure = time_figure(axis)
    figure.add_trace(_bars(sums["redelivered"], axis, "redelivered", REDELIVERED, ""))
    most = sums["redelivered"].max()
    figure.update_yaxes(title=f"messages {per_step(axis)}", rangemode="tozero", range=None if most > 0 else [0, 1])
    return shade_gaps(figure, [sums], axis)


def _bars(values: pd.Series, axis: Axis, name: str, colour: str, pattern: str) -> go.Bar:
    return go.Bar(
        x=values.index,
        y=values,
        name=name,
        offset=0,
        width=axis.step * 60_000 * 0.92,
        marker=striped(colour, pattern),
        hovertemplate="%{y:,.0f}",
    )


def _log_range(limits: tuple[float, float] | None) -> list[float] | None:
    """Limits in seconds as exponents of ten for milliseconds, with a margin at both ends."""
    if limits is None or limits[0] <= 0:
        return None
    low, high = (math.log10(value * 1000) for value in limits)
    return [low - 0.15, high + 0.15]
