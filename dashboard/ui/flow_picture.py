"""The picture of a flow graph: a click on a queue opens its page; the same as a table below."""

import pandas as pd
import streamlit as st

from dashboard.charts.flow_chart import flow_chart
from dashboard.format.escape import visible
from dashboard.frames import flow_graph, vhost_traffic
from dashboard.frames.flow_graph import FlowGraph
from dashboard.frames.vhost_traffic import VhostTraffic
from dashboard.ui import cache, elements, layout
from dashboard.ui.layout import PageContext


def show(graph: FlowGraph, title: str, key: str) -> None:
    """Draw the graph; `title` is Markdown, `key` is unique on the page."""
    with st.container(key=f"plain-title-{key}", gap="small"):
        st.markdown(
            f"**{title}**",
            help="Messages flow from left to right. A line is as wide as its rate. Thin lines: no messages, or an "
            "unknown rate. Dashed: dead letters. Dotted: possible. Click a queue to open it.",
        )
        for number, note in enumerate(graph.notes):
            elements.plain(f"{key}-note-{number}", note)
        with st.container(key=f"flow-columns-{len(graph.columns)}"):
            selection = elements.chart(
                flow_chart(graph), key, "Flow of messages; the same as text in the table below.", select="points"
            )
    with st.expander("As a table"):
        rows = flow_graph.table(graph)
        shown = rows.assign(**{name: rows[name].map(visible) for name in ("from", "to", "what")})
        st.dataframe(
            shown,
            column_config={
                "rate": st.column_config.NumberColumn("Messages/s", format="%.2f"),
                **{name: st.column_config.TextColumn(name.capitalize()) for name in ("from", "to", "what")},
            },
            hide_index=True,
            key=f"{key}-table",
        )
        elements.download(key, lambda: rows)
    for point in selection.points:
        vhost, queue = [*point.get("customdata", ()), "", ""][:2]
        if queue:
            elements.forget_selections()
            layout.open_page("queues", queue=queue, vhost=vhost)


def traffic(context: PageContext, vhost: str) -> VhostTraffic:
    """The traffic of a virtual host."""

    def listed(name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        return cache.object_list(context.settings.exporter, context.cluster or "", name, columns).rows

    return vhost_traffic.traffic(
        vhost,
        listed("channels", vhost_traffic.CHANNEL_COLUMNS),
        listed("connections", vhost_traffic.CONNECTION_COLUMNS),
        listed("exchanges", vhost_traffic.EXCHANGE_COLUMNS),
    )


def writers(context: PageContext) -> pd.DataFrame:
    """The publishers that use the stream protocol."""
    url, cluster = context.settings.exporter, context.cluster or ""
    return vhost_traffic.stream_writers(
        cache.object_list(url, cluster, "stream_publishers", vhost_traffic.STREAM_PUBLISHER_COLUMNS).rows,
        cache.object_list(url, cluster, "connections", vhost_traffic.CONNECTION_COLUMNS).rows,
    )
