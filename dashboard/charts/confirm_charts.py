"""Charts of the page "Confirms". Pure; colours and style as in `minute_charts`."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.charts import minute_charts, theme
from dashboard.format.escape import plot_text
from dashboard.format.timezones import UTC, Zone
from dashboard.frames.minute_frames import Axis

LAYERS = {
    "network+channel": ("#56B4E9", ""),
    "queue": ("#2F81C7", "/"),
    "persist": ("#E08A00", "x"),
    "replicate": ("#009E73", "."),
    "stream": ("#8E78D4", "-"),
    "store": ("#A6761D", "/"),
}


def heatmap(grid: pd.DataFrame, lines: pd.DataFrame, axis: Axis) -> go.Figure:
    """Number of confirms by latency and time, with p50, p99 and max as lines; the colour scale is logarithmic.

    Args:
        grid: result of `confirm_frames.heat`.
        lines: result of `minute_frames.latency`.
        axis: time axis.
    """
    figure, half_step = theme.time_figure(axis, height=380), pd.Timedelta(minutes=axis.step) / 2
    edges = grid.index.to_numpy() * 1000
    step = edges[1] / edges[0] if len(edges) > 1 else 1.36
    shown = grid.to_numpy()
    with np.errstate(divide="ignore"):
        shade = np.where(shown > 0, np.log10(shown), np.nan)
    figure.add_trace(
        go.Heatmap(
            # A cell covers one step in time, and the latencies between the upper edge of the bucket below and its own.
            x=[*grid.columns, axis.end],
            y=edges / step**0.5,
            z=shade,
            customdata=shown,
            colorscale="Cividis",
            colorbar={
                "title": {"text": "confirms"},
                "tickvals": [0, 1, 2, 3, 4, 5],
                "ticktext": ["1", "10", "100", "1k", "10k", "100k"],
                "thickness": 10,
            },
            hovertemplate="%{customdata:,.0f} confirms near %{y:,.3g} ms<extra></extra>",
            xgap=0,
            ygap=0,
            hoverongaps=False,
        )
    )
    for name, dash, width in (("max", "dot", 1.5), ("p99", "solid", 2.5), ("p50", "dash", 1.5)):
        figure.add_trace(
            go.Scatter(
                x=pd.DatetimeIndex(lines.index) + half_step,
                y=lines[name] * 1000,
                name=name,
                mode="lines",
                line={"color": "#C2185B", "dash": dash, "width": width},
                connectgaps=False,
                hovertemplate="%{y:,.3g} ms",
            )
        )
    figure.update_yaxes(
        type="log", title="log scale", tickvals=list(theme.MS_TICKS), ticktext=list(theme.MS_TICKS.values())
    )
    return theme.shade_gaps(figure, [lines], axis)


def layer_history(layers: pd.DataFrame, axis: Axis) -> go.Figure:
    """Latency that each layer adds to the median confirm, stacked, by step; `confirm_frames.layer_history` makes it."""
    figure = theme.time_figure(axis, height=380)
    for name in layers.columns:
        colour, pattern = LAYERS.get(str(name), (theme.OTHER, ""))
        figure.add_trace(
            go.Bar(
                x=layers.index,
                y=layers[name] * 1000,
                name=plot_text(str(name)),
                offset=0,
                width=axis.step * 60_000 * 0.95,
                marker=theme.striped(colour, pattern),
                hovertemplate="%{y:,.3g} ms",
            )
        )
    figure.update_layout(barmode="stack")
    figure.update_yaxes(title="ms, median", rangemode="tozero")
    return theme.shade_gaps(figure, [layers], axis)


def layer_bars(rows: pd.DataFrame) -> go.Figure:
    """Latency that each layer adds to a confirm, one bar per node; `rows` are made by `confirm_frames.layer_rows`."""
    figure = go.Figure()
    measured = rows.dropna(subset=["seconds"])
    for name in dict.fromkeys(measured["layer"]):
        colour, pattern = LAYERS.get(str(name), (theme.OTHER, ""))
        mine = measured[measured["layer"] == name]
        figure.add_trace(
            go.Bar(
                y=[plot_text(str(node)) or "all" for node in mine["node"]],
                x=mine["seconds"] * 1000,
                name=plot_text(str(name)),
                orientation="h",
                marker=theme.striped(colour, pattern),
                text=[f"{plot_text(str(name))} {value * 1000:,.3g} ms" for value in mine["seconds"]],
                textposition="inside",
                insidetextanchor="middle",
                insidetextfont={"color": theme.INK},
                hovertemplate="%{x:,.3g} ms",
            )
        )
    nodes = max(measured["node"].nunique(), 1)
    theme.fixed_size(figure, 110 + 44 * nodes, top=30)
    # A label that does not fit is left out rather than shrunk; the legend and the tooltip have it.
    figure.update_layout(barmode="stack", uniformtext={"mode": "hide", "minsize": 10})
    figure.update_xaxes(title="ms, median", rangemode="tozero")
    return figure


def burst_points(by_stream: dict[str, pd.DataFrame], zone: Zone = UTC) -> go.Figure:
    """Size of ack bursts and the time between them, one mark per minute; frames are made by `confirm_frames.bursts`.

    The custom data of a mark is its minute, in `zone` and in UTC.
    """
    figure = go.Figure()
    for symbol, (name, rows) in zip(("circle", "diamond", "square", "cross"), by_stream.items(), strict=False):
        figure.add_trace(
            go.Scatter(
                x=rows["interval"] * 1000,
                y=rows["size"],
                name=plot_text(name),
                mode="markers",
                marker={
                    "color": minute_charts.QUEUE_TYPES.get(name, theme.OTHER),
                    "symbol": symbol,
                    "size": 7,
                    "opacity": 0.7,
                },
                customdata=[
                    (f"{zone.local(at):%H:%M} {zone.abbreviation(at)}", f"{at:%Y-%m-%dT%H:%M}") for at in rows.index
                ],
                hovertemplate="%{y:,.3g} messages every %{x:,.3g} ms (%{customdata[0]})",
            )
        )
    theme.fixed_size(figure, 300)
    figure.update_xaxes(
        title="time between bursts, log scale",
        type="log",
        tickvals=list(theme.MS_TICKS),
        ticktext=list(theme.MS_TICKS.values()),
    )
    figure.update_yaxes(title="messages per burst", rangemode="tozero")
    return figure
