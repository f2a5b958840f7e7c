"""Figures of the page "History". Pure, as `dashboard.charts`, whose colours, gaps and axes they share."""

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from ackscope.measures import Measure
from ackscope.ranking import ChangedObject, describe_change, display_name
from dashboard import charts, drawing
from dashboard.escape import plot_text
from dashboard.frames import Axis

ROSE, FELL, TOLD = "#2F81C7", "#E08A00", "#C2185B"
_SHOWN = 12
_UNITS = {"rate": "a second", "seconds": "ms", "share": "%", "bytes": "MiB", "messages": "messages"}
_SCALE = {"seconds": 1000.0, "share": 100.0, "bytes": 1 / 1024**2}


def moves(moved: Sequence[ChangedObject], axis: Axis, moment: datetime) -> go.Figure:
    """Who moved when, the likeliest cause on top: up and down as triangles, findings as stars.

    What moved of a queue's channels and consumers stands on the line of the queue.
    """
    zone = axis.start.tzinfo
    rows = list(moved[:_SHOWN])
    labels = [f"{place}. {plot_text(display_name(it.kind, it.vhost, it.name), 40)}" for place, it in enumerate(rows, 1)]
    figure = go.Figure()
    for name, symbol, colour in (("rose", "triangle-up", ROSE), ("fell", "triangle-down", FELL)):
        found = [
            (
                shift,
                describe_change(shift)
                if shift in it.shifts
                else f"{display_name(shift.kind, '', shift.name)}: {describe_change(shift)}",
                label,
            )
            for it, label in zip(rows, labels, strict=True)
            for shift in (*it.shifts, *it.parts)
            if (shift.after > shift.before) == (name == "rose")
        ]
        figure.add_trace(
            go.Scatter(
                x=[datetime.fromtimestamp(shift.at, zone) for shift, _, _ in found],
                y=[label for _, _, label in found],
                text=[plot_text(what, 90) for _, what, _ in found],
                name=name,
                mode="markers",
                marker={"symbol": symbol, "size": 12, "color": colour},
                hovertemplate=f"%{{x|%H:%M}} {axis.zone}: %{{text}}<extra></extra>",
            )
        )
    told = [(one, label) for it, label in zip(rows, labels, strict=True) for one in it.findings]
    figure.add_trace(
        go.Scatter(
            x=[datetime.fromtimestamp(one.began, zone) for one, _ in told],
            y=[label for _, label in told],
            text=[plot_text(f"{one.rule} ({one.severity})") for one, _ in told],
            name="finding",
            mode="markers",
            marker={"symbol": "star", "size": 13, "color": TOLD},
            hovertemplate=f"%{{x|%H:%M}} {axis.zone}: %{{text}}<extra></extra>",
        )
    )
    if axis.start <= moment <= axis.end:
        figure.add_vline(x=moment.astimezone(zone), line={"color": drawing.OTHER, "dash": "dot", "width": 1.5})
    drawing.timed(drawing.still(figure, 110 + 30 * len(rows)), axis)
    figure.update_xaxes(nticks=5, gridcolor=drawing.GRID)
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1])
    return figure


def band(lines: pd.DataFrame, axis: Axis, measure: Measure) -> go.Figure:
    """One measure of a queue over what is usual at that hour: `value`, `low`, `middle` and `high`, by step."""
    shown = lines * _SCALE.get(measure.unit, 1.0)
    figure = drawing.drawing(axis, height=300)
    # Two lines, the lower one unseen: what lies between them is filled. A band has corners, it is of whole hours.
    for name, fill, line in (("high", None, 0), ("low", "tonexty", 0)):
        figure.add_trace(
            go.Scatter(
                x=shown.index,
                y=shown[name],
                name="usual at this hour" if name == "low" else "",
                showlegend=name == "low",
                mode="lines",
                line={"width": line, "color": charts.READY, "shape": "hv"},
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
            line={"width": 1.2, "dash": "dash", "color": charts.READY, "shape": "hv"},
            connectgaps=False,
            hovertemplate="%{y:,.3g}",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=shown.index,
            y=shown["value"],
            name="seen",
            mode="lines+markers",
            line={"width": 2, "color": charts.UNACKED},
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
            marker={"size": 10, "symbol": "diamond-open", "color": TOLD, "line": {"width": 2}},
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(title=_UNITS.get(measure.unit, ""), rangemode="tozero")
    return drawing.shade(figure, [shown[["value"]]], axis)
