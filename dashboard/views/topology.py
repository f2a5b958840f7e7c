"""The page "Topology": exchanges, consumers and dead-letter routes of one queue."""

import pandas as pd
import streamlit as st

from dashboard.charts import layered_graph, minute_charts, theme
from dashboard.format.escape import visible
from dashboard.frames import consumer_rows, dead_letters, queue_neighbours
from dashboard.frames.queue_rows import is_own
from dashboard.ui import cache, consumer_table, elements
from dashboard.ui.layout import PageContext

_COLOURS = (theme.OTHER, theme.OTHER, minute_charts.QUEUE_TYPES["classic"], minute_charts.READY)
# Queues in the select box; more would be megabytes.
_MAX_OPTIONS = 2000


def render(context: PageContext) -> None:
    """Select a queue (`?queue=`, `&vhost=`) and draw its neighbours."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    url = context.settings.exporter
    queues = cache.object_list(url, context.cluster, "queues", dead_letters.COLUMNS)
    if not queues.known:
        elements.plain("no-queues", f"No queue data: {queues.problem or 'not polled yet'}.")
        return
    selected = _select_queue(queues.rows)
    if selected is not None:
        _neighbours(context, *selected, queues.rows)


def _select_queue(queues: pd.DataFrame) -> tuple[str, str] | None:
    # The first queue is the default: queues of probes come last.
    names = sorted(zip(queues["vhost"], queues["name"], strict=True), key=lambda it: (is_own(it[1]), it))
    if not names:
        st.caption("The cluster has no queues.")
        return None
    requested = (st.query_params.get("vhost", "/"), st.query_params.get("queue", ""))
    options = names[:_MAX_OPTIONS]
    if requested in names and requested not in options:
        options = [requested, *options]
    if len(names) > len(options):
        st.caption(
            f"This list has the first {_MAX_OPTIONS} of {len(names):,} queues. Search on the page Queues for others."
        )

    def store() -> None:
        st.query_params["vhost"], st.query_params["queue"] = st.session_state["topology-queue"]

    selected: tuple[str, str] = st.selectbox(
        "Queue",
        options,
        index=options.index(requested) if requested in options else 0,
        format_func=lambda it: visible(f"{it[1]} (vhost {it[0]})"),
        key="topology-queue",
        on_change=store,
    )
    if requested[1] and requested not in names:
        st.warning("The queue in the address does not exist now. Showing the first queue.")
    return selected


@st.fragment(run_every="15s")
def _neighbours(context: PageContext, vhost: str, name: str, queues: pd.DataFrame) -> None:
    url, cluster = context.settings.exporter, context.cluster or ""
    bindings = cache.object_list(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    if not bindings.known:
        elements.plain("no-bindings", "No binding data: too many bindings to store, or not polled yet.")
    consumers = consumer_table.load(context)
    if consumers is None:
        consumers = consumer_rows.consumer_rows(*(pd.DataFrame(columns=list(it)) for it in _EMPTY))
    mine = queues[(queues["vhost"] == vhost) & (queues["name"] == name)]
    dead = tuple(
        (route.exchange, route.target or route.why)
        for route in dead_letters.routes(queues, bindings.rows if bindings.known else None)
        if (route.vhost, route.queue) == (vhost, name)
    )
    neighbours = queue_neighbours.neighbours(vhost, name, bindings.rows, consumers, dead)
    elements.chart(
        layered_graph.layered_graph(neighbours.layers, neighbours.edges, _COLOURS),
        "topology",
        f"Left: exchanges. Middle: the queue {visible(name)}. Right: consumers and dead letters.",
    )
    if neighbours.omitted:
        st.caption("Not shown: " + ", ".join(neighbours.omitted) + ".")
    if mine.empty:
        return
    st.caption("Labels on lines are routing keys. Idle and busy exchanges look the same.")
    elements.download("edges", lambda: pd.DataFrame(list(neighbours.edges), columns=["from", "to", "routing_key"]))


_EMPTY = (consumer_rows.CONSUMER_COLUMNS, consumer_rows.CHANNEL_COLUMNS, consumer_rows.CONNECTION_COLUMNS)
