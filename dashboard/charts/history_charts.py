"""Charts of the page "History". Pure; colours and style as in `minute_charts`."""

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from ackscope.measures import Measure
from ackscope.ranking import ChangedObject, describe_change, display_name
from dashboard.charts import minute_charts, theme
from dashboard.format.escape import plot_text
from dashboard.frames.minute_frames import Axis

INCREASE, DECREASE, FINDING = "#2F81C7", "#E08A00", "#C2185B"
_SHOWN = 12
_UNITS = {"rate": "per second", "seconds": "ms", "share": "%", "bytes": "MiB", "messages": "messages"}
_SCALE = {"seconds": 1000.0, "share": 100.0, "bytes": 1 / 1024**2}


def changes(changed: Sequence[ChangedObject], axis: Axis, moment: datetime) -> go.Figure:
    """Change points by object, the likeliest cause on top: increases and decreases as triangles, findings as stars.

    Changes of a queue's channels and consumers are on the line of the queue.
    """
    zone = axis.start.tzinfo
    rows = list(changed[:_SHOWN])
    labels = [
        f"{number}. {plot_text(display_name(it.kind, it.vhost, it.name), 40)}" for number, it in enumerate(rows, 1)
    ]
    figure = go.Figure()
    for name, symbol, colour in (("increase", "triangle-up", INCREASE), ("decrease", "triangle-down", DECREASE)):
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
            if (shift.after > shift.before) == (name == "increase")
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
    findings = [(one, label) for it, label in zip(rows, labels, strict=True) for one in it.findings]
    figure.add_trace(
        go.Scatter(
            x=[datetime.fromtimestamp(one.began, zone) for one, _ in findings],
            y=[label for _, label in findings],
            text=[plot_text(f"{one.rule} ({one.severity})") for one, _ in findings],
            name="finding",
            mode="markers",
            marker={"symbol": "star", "size": 13, "color": FINDING},
            hovertemplate=f"%{{x|%H:%M}} {axis.zone}: %{{text}}<extra></extra>",
        )
    )
    if axis.start <= moment <= axis.end:
        figure.add_vline(x=moment.astimezone(zone), line={"color": theme.OTHER, "dash": "dot", "width": 1.5})
    theme.set_time_axis(theme.fixed_size(figure, 110 + 30 * len(rows)), axis)
    figure.update_xaxes(nticks=5, gridcolor=theme.GRID)
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1])
    return figure


def band(lines: pd.DataFrame, axis: Axis, measure: Measure) -> go.Figure:
    """One measure of a queue with its baseline band: `value`, `low`, `middle` (median) and `high`, by step."""
    shown = lines * _SCALE.get(measure.unit, 1.0)
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
    figure.update_yaxes(title=_UNITS.get(measure.unit, ""), rangemode="tozero")
    return theme.shade_gaps(figure, [shown[["value"]]], axis)
