"""Graphs with layers from left to right, for topology and dead letters. Pure."""

from collections.abc import Sequence

import plotly.graph_objects as go

from dashboard.charts.theme import OTHER, fixed_size
from dashboard.format.escape import plot_text

Edge = tuple[str, str, str]
"""(from, to, label)."""


def layered_graph(layers: Sequence[Sequence[str]], edges: Sequence[Edge], colours: Sequence[str]) -> go.Figure:
    """Boxes in columns, connected by lines.

    Args:
        layers: names, one sequence per column; each name appears once.
        edges: connections between names of different columns.
        colours: one per column.
    """
    places = {
        name: (column, _row(row, len(names))) for column, names in enumerate(layers) for row, name in enumerate(names)
    }
    figure = go.Figure()
    for start, end, label in edges:
        (x0, y0), (x1, y1) = places[start], places[end]
        figure.add_trace(
            go.Scatter(
                x=[x0, x1],
                y=[y0, y1],
                mode="lines",
                line={"color": OTHER, "width": 1.5},
                hoverinfo="skip",
                showlegend=False,
            )
        )
        if label:
            figure.add_annotation(
                x=(x0 + x1) / 2,
                y=(y0 + y1) / 2,
                text=plot_text(label, 28),
                showarrow=False,
                font={"size": 11},
            )
    for column, names in enumerate(layers):
        for name in names:
            figure.add_annotation(
                x=column,
                y=places[name][1],
                text=plot_text(name, 34),
                showarrow=False,
                bordercolor=colours[column],
                borderwidth=2,
                borderpad=4,
                bgcolor="rgba(255,255,255,0.9)",
                font={"color": "#1c2127", "size": 12},
                hovertext=plot_text(name, 400),
            )
    tallest = max((len(names) for names in layers), default=1)
    fixed_size(figure, 80 + 44 * max(tallest, 1), top=10)
    figure.update_xaxes(visible=False, range=[-0.45, len(layers) - 0.55])
    figure.update_yaxes(visible=False, range=[-0.1, 1.1])
    return figure


def _row(row: int, rows: int) -> float:
    return 1 - (row + 0.5) / rows
