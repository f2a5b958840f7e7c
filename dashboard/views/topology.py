"""The page "Topology": publishers, exchanges, queues and dead-letter routes of a virtual host, or around one queue."""

import pandas as pd
import streamlit as st

from dashboard.data.object_lists import ObjectList
from dashboard.format.escape import literal, visible
from dashboard.frames import dead_letters, flow_graph, queue_rows
from dashboard.ui import cache, elements, flow_picture
from dashboard.ui.layout import PageContext, link
from dashboard.views.queue import queue_graph

# Queues in the select box; more would be megabytes.
_MAX_OPTIONS = 2000
_ALL = ""
"""Option of the select box for the whole virtual host."""


def render(context: PageContext) -> None:
    """Select a virtual host (`?vhost=`), and a queue (`?queue=`) or all, and draw the flow of messages."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    listed = cache.object_list(context.settings.exporter, context.cluster, "queues", queue_rows.COLUMNS)
    if not listed.known:
        elements.plain("no-queues", f"No queue data: {listed.problem or 'not polled yet'}.")
        return
    if listed.rows.empty:
        st.caption("The cluster has no queues.")
        return
    boxes = st.columns([1, 3])
    with boxes[0]:
        vhost = _select_vhost(listed.rows)
    with boxes[1]:
        queue = _select_queue(listed.rows, vhost)
    _draw(context, vhost, queue)


def _select_vhost(queues: pd.DataFrame) -> str:
    """The virtual host of the address, or else that of the most queues of applications."""
    apps = queues[~queues["name"].map(queue_rows.is_own)]
    options = [*(apps if len(apps) else queues)["vhost"].value_counts().index]
    options += sorted(set(queues["vhost"]) - set(options))
    requested = st.query_params.get("vhost")

    def store() -> None:
        st.query_params["vhost"] = st.session_state["topology-vhost"]
        if "queue" in st.query_params:
            del st.query_params["queue"]

    selected: str = st.selectbox(
        "Virtual host",
        options,
        index=options.index(requested) if requested in options else 0,
        format_func=visible,
        key="topology-vhost",
        on_change=store,
    )
    return selected


def _select_queue(queues: pd.DataFrame, vhost: str) -> str:
    """The queue of the address; "" for the whole virtual host."""
    # Queues of probes come last.
    names = sorted(queues.loc[queues["vhost"] == vhost, "name"], key=lambda it: (queue_rows.is_own(it), it))
    requested = st.query_params.get("queue", _ALL)
    options = [_ALL, *names[:_MAX_OPTIONS]]
    if requested in names and requested not in options:
        options = [_ALL, requested, *options[1:]]
    if len(names) >= len(options):
        st.caption(f"This list has {_MAX_OPTIONS} of {len(names):,} queues. Search on the page Queues for others.")

    def store() -> None:
        if st.session_state[key]:
            st.query_params["vhost"], st.query_params["queue"] = vhost, st.session_state[key]
        elif "queue" in st.query_params:
            del st.query_params["queue"]

    # Each virtual host needs a box of its own: the browser keeps the selected place.
    key = f"topology-queue-{sorted(set(queues['vhost'])).index(vhost)}"
    selected: str = st.selectbox(
        "Queue",
        options,
        index=options.index(requested) if requested in options else 0,
        format_func=lambda it: visible(it) if it else "All queues of the virtual host",
        key=key,
        on_change=store,
    )
    if requested and requested not in names:
        st.warning("The queue in the address does not exist now. Showing the whole virtual host.")
    return selected


@st.fragment(run_every="15s")
def _draw(context: PageContext, vhost: str, name: str) -> None:
    url, cluster = context.settings.exporter, context.cluster or ""
    listed = cache.object_list(url, cluster, "queues", queue_rows.COLUMNS)
    if not name:
        _map(context, vhost, listed)
        return
    mine = listed.rows[(listed.rows["vhost"] == vhost) & (listed.rows["name"] == name)]
    if mine.empty:
        elements.plain("no-queue", f"No data of this queue: {listed.problem or 'it does not exist now'}.")
        return
    link("queues", "Queue details", queue=name, vhost=vhost)
    graph = queue_graph(context, vhost, name, queue_rows.queue_rows(mine, ()).iloc[0])
    flow_picture.show(graph, f"Flow of messages around {literal(name)}", "flow")


def _map(context: PageContext, vhost: str, listed: ObjectList) -> None:
    url, cluster = context.settings.exporter, context.cluster or ""
    rows = queue_rows.queue_rows(listed.rows, cache.current_findings(url, context.cluster))
    queues = cache.object_list(url, cluster, "queues", dead_letters.COLUMNS)
    bindings = cache.object_list(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    if not bindings.known:
        elements.plain("no-bindings", "No binding data: too many bindings to store, or not polled yet.")
    graph = flow_graph.of_vhost(
        vhost,
        rows,
        bindings.rows,
        dead_letters.routes(queues.rows, bindings.rows if bindings.known else None),
        flow_picture.traffic(context, vhost),
    )
    if not graph.boxes:
        st.caption("This virtual host has no queues of applications.")
        return
    flow_picture.show(graph, f"Flow of messages in virtual host {literal(vhost)}", "map")
