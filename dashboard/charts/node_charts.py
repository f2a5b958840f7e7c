"""Charts of a node: its resources over time against their limits. Pure; colours and style as in `minute_charts`."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ackscope import format as fmt
from dashboard.charts import minute_charts, theme
from dashboard.frames import minute_frames, queue_history
from dashboard.frames.minute_frames import Axis
from dashboard.frames.node_history import NodeResource

USED, LIMIT = minute_charts.QUEUE_TYPES["classic"], "#D55E00"
_NEAR = 0.4
"""A limit is drawn to scale if the value reaches this share of it; else it is only written."""


def node_history(found: Mapping[NodeResource, tuple[pd.Series, pd.Series]], axis: Axis) -> go.Figure:
    """The resources side by side. A limit that is far away is written above, or its line would flatten the curve."""
    figure = make_subplots(
        rows=1,
        cols=max(len(found), 1),
        subplot_titles=[_title(resource, *series) for resource, series in found.items()],
        horizontal_spacing=0.045,
    )
    theme.fixed_size(figure, 190, top=24)
    lines, columns = [], []
    for column, (resource, (used, limit)) in enumerate(found.items(), start=1):
        for values, name, colour, dash in ((used, "used", USED, "solid"), (limit, "limit", LIMIT, "dash")):
            if name == "limit" and not _to_scale(resource, used, limit):
                continue
            columns.append(column)
            lines.append(
                go.Scatter(
                    x=values.index,
                    y=values,
                    name="free" if resource.floor and name == "used" else name,
                    mode="lines" if values.notna().sum() > 40 else "lines+markers",
                    line={"color": colour, "dash": dash, "width": 2},
                    marker={"size": 3},
                    connectgaps=False,
                    showlegend=False,
                    hovertemplate="%{y:,.4g}",
                )
            )
        _shade(figure, queue_history.coverage({"used": used}, axis), axis, column)
    figure.add_traces(lines, rows=[1] * len(lines), cols=columns)
    figure.update_yaxes(rangemode="tozero", nticks=4)
    figure.update_layout(hovermode="x unified")
    theme.set_time_axis(figure, axis)
    figure.update_xaxes(nticks=3, title=None)
    figure.update_annotations(font={"size": 12})
    return figure


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


def _shade(figure: go.Figure, coverage: pd.DataFrame, axis: Axis, column: int) -> None:
    """Shade the time without data in one column."""
    gaps = minute_frames.gaps([coverage], axis)
    shapes = [theme.upright(start, end, fillcolor=theme.OTHER, opacity=0.13) for start, end in gaps]
    theme.add_upright(figure, shapes, column)
