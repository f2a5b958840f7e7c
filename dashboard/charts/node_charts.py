"""Charts of a node: its resources over time against their limits. Pure; colours and style as in `minute_charts`."""

from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ackscope import format as fmt
from dashboard.charts import minute_charts, theme
from dashboard.frames import minute_frames, queue_history
from dashboard.frames.minute_frames import Axis
from dashboard.frames.node_history import RESOURCES, NodeResource

USED, LIMIT = minute_charts.QUEUE_TYPES["classic"], "#D55E00"
_NEAR = 0.4
"""A limit is drawn to scale if the value reaches this share of it; else it is only written."""


def node_history(found: Mapping[NodeResource, tuple[pd.Series, pd.Series]], axis: Axis) -> go.Figure:
    """The resources side by side. A limit that is far away is written above, or its line would flatten the curve."""
    layout = deepcopy(_layout(len(found)))
    lines, shapes = [], []
    for place, (resource, (used, limit)) in enumerate(found.items()):
        number = str(place + 1) if place else ""
        layout["annotations"][place]["text"] = _title(resource, used, limit)
        layout[f"xaxis{number}"] |= theme.time_range(axis)
        for values, name, colour, dash in ((used, "used", USED, "solid"), (limit, "limit", LIMIT, "dash")):
            if name == "limit" and not _to_scale(resource, used, limit):
                continue
            lines.append(
                go.Scatter(
                    x=values.index,
                    y=values,
                    xaxis=f"x{number}",
                    yaxis=f"y{number}",
                    name="free" if resource.floor and name == "used" else name,
                    mode="lines" if values.notna().sum() > 40 else "lines+markers",
                    line={"color": colour, "dash": dash, "width": 2},
                    marker={"size": 3},
                    connectgaps=False,
                    showlegend=False,
                    hovertemplate="%{y:,.4g}",
                )
            )
        shapes += _gaps(queue_history.coverage({"used": used}, axis), axis, number)
    return go.Figure(lines, layout | {"shapes": shapes})


@lru_cache(maxsize=len(RESOURCES) + 1)
def _layout(charts: int) -> dict[str, Any]:
    """The layout of so many charts side by side, without titles and times; Plotly takes 50 ms to make one."""
    figure = make_subplots(rows=1, cols=max(charts, 1), subplot_titles=[" "] * charts, horizontal_spacing=0.045)
    theme.fixed_size(figure, 190, top=24)
    figure.update_yaxes(rangemode="tozero", nticks=4)
    figure.update_xaxes(nticks=3, tickangle=0)
    figure.update_layout(hovermode="x unified")
    figure.update_annotations(font={"size": 12})
    layout: dict[str, Any] = figure.layout.to_plotly_json()
    return layout


def _title(resource: NodeResource, used: pd.Series, limit: pd.Series) -> str:
    known = limit.dropna()
    if known.empty:
        return f"{resource.title} (limit unknown)"
    words = "cores" if resource.limit == "processors" else "limit"
    shown = "" if _to_scale(resource, used, limit) else ", not to scale"
    return f"{resource.title} ({words} {fmt.number(float(known.iloc[-1]))}{shown})"


def _to_scale(resource: NodeResource, used: pd.Series, limit: pd.Series) -> bool:
    if not limit.notna().any():
        return False
    if resource.floor:
        return bool(limit.max() >= 0.05 * used.max())
    return bool(used.max() >= _NEAR * limit.min())


def _gaps(coverage: pd.DataFrame, axis: Axis, number: str) -> list[dict[str, object]]:
    """Shades of the time without data in the chart of this number."""
    gaps = minute_frames.gaps([coverage], axis)
    place = {"xref": f"x{number}", "yref": f"y{number} domain"}
    return [theme.upright(start, end, fillcolor=theme.OTHER, opacity=0.13) | place for start, end in gaps]
