"""The page "Topology": what is around one queue."""

import pandas as pd
import streamlit as st

from dashboard.charts import layered_graph, minute_charts, theme
from dashboard.format.escape import visible
from dashboard.frames import consumer_rows, dead_letters, queue_neighbours
from dashboard.frames.queue_rows import is_own
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext
from dashboard.views.queue import consumers_of

_COLOURS = (theme.OTHER, theme.OTHER, minute_charts.QUEUE_TYPES["classic"], minute_charts.READY)
_OFFERED = 2000
"""Queues in the box to choose from: it finds by typing, and more would be megabytes."""


def render(place: PageContext) -> None:
    """Choose a queue (`?queue=`, `&vhost=`), then see who feeds it and who empties it."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    url = place.settings.exporter
    queues = cache.listed(url, place.cluster, "queues", dead_letters.COLUMNS)
    if not queues.known:
        elements.plain("no-queues", f"Queues are not known: {queues.problem or 'not read yet'}.")
        return
    chosen = _choose(queues.rows)
    if chosen is not None:
        _around(place, *chosen, queues.rows)


def _choose(queues: pd.DataFrame) -> tuple[str, str] | None:
    # The first one is shown where nobody chose: rather one of the users than of our own probes.
    names = sorted(zip(queues["vhost"], queues["name"], strict=True), key=lambda it: (is_own(it[1]), it))
    if not names:
        st.caption("There is no queue.")
        return None
    asked = (st.query_params.get("vhost", "/"), st.query_params.get("queue", ""))
    offered = names[:_OFFERED]
    if asked in names and asked not in offered:
        offered = [asked, *offered]
    if len(names) > len(offered):
        st.caption(
            f"The first {_OFFERED} of {len(names):,} queues can be chosen here; the page Queues finds the others."
        )

    def keep() -> None:
        st.query_params["vhost"], st.query_params["queue"] = st.session_state["topology-queue"]

    chosen: tuple[str, str] = st.selectbox(
        "Queue",
        offered,
        index=offered.index(asked) if asked in offered else 0,
        format_func=lambda it: visible(f"{it[1]} (vhost {it[0]})"),
        key="topology-queue",
        on_change=keep,
    )
    if asked[1] and asked not in names:
        st.warning("The queue in this page's address is not there now; the first one is shown.")
    return chosen


@st.fragment(run_every="15s")
def _around(place: PageContext, vhost: str, name: str, queues: pd.DataFrame) -> None:
    url, cluster = place.settings.exporter, place.cluster or ""
    bindings = cache.listed(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    if not bindings.known:
        elements.plain("no-bindings", "Bindings are not known: there are too many to hold, or they were not read yet.")
    consumers = consumers_of(place)
    if consumers is None:
        consumers = consumer_rows.consumer_rows(*(pd.DataFrame(columns=list(it)) for it in _EMPTY))
    mine = queues[(queues["vhost"] == vhost) & (queues["name"] == name)]
    dead = tuple(
        (step.exchange, step.target or step.why)
        for step in dead_letters.paths(queues, bindings.rows if bindings.known else None)
        if (step.vhost, step.queue) == (vhost, name)
    )
    around = queue_neighbours.neighbourhood(vhost, name, bindings.rows, consumers, dead)
    elements.chart(
        layered_graph.layered(around.layers, around.edges, _COLOURS),
        "topology",
        f"Left exchanges, in the middle the queue {visible(name)}, right consumers and dead letters.",
    )
    if around.left_out:
        st.caption("Not drawn: " + ", ".join(around.left_out) + ".")
    if mine.empty:
        return
    st.caption(
        "Words on a line are routing keys. An exchange that nobody publishes to looks the same as a busy one here."
    )
    elements.save("ways", lambda: pd.DataFrame(list(around.edges), columns=["from", "to", "routing_key"]))


_EMPTY = (consumer_rows.CONSUMER_COLUMNS, consumer_rows.CHANNEL_COLUMNS, consumer_rows.CONNECTION_COLUMNS)
