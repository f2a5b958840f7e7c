"""The search (Ctrl-K) for queues, clients, hosts, findings, nodes and clusters, which leads to their pages."""

import pandas as pd
import streamlit as st

from dashboard.format.escape import literal
from dashboard.frame.scripts import FOCUS_SEARCH
from dashboard.frames import consumer_rows, queue_rows, search_hits
from dashboard.frames.search_hits import SearchHit
from dashboard.ui import cache, layout
from dashboard.ui.layout import PageContext

_ICONS = {
    "Finding": ":material/error:",
    "Queue": ":material/inbox:",
    "Client": ":material/terminal:",
    "Host": ":material/dns:",
    "Node": ":material/memory:",
    "Cluster": ":material/hub:",
}


def render(context: PageContext) -> None:
    """The button that opens the search; Ctrl-K presses it."""
    if st.button("Search", icon=":material/search:", shortcut="Ctrl+K", key="search"):
        _dialog(context)


@st.dialog("Search", width="medium")
def _dialog(context: PageContext) -> None:
    text: str = st.text_input(
        "Find",
        key="search-text",
        live=True,
        placeholder="part of the name of a queue, client, host, node or cluster, or of a finding",
        label_visibility="collapsed",
    )
    st.html(FOCUS_SEARCH, unsafe_allow_javascript=True)
    hits = _hits(context, text)
    if not hits:
        st.caption("Nothing found in this cluster." if text.strip() else "Type a part of a name.")
        return
    if st.button("Open the first", shortcut="Ctrl+Enter", key="search-first", type="primary"):
        layout.open_page(hits[0].page, **_query(context, hits[0]))
    for number, hit in enumerate(hits):
        _row(context, number, hit)


def _query(context: PageContext, hit: SearchHit) -> dict[str, str]:
    """The query parameters of a hit; its cluster is the current one if it names none."""
    return ({} if context.cluster is None else {"cluster": context.cluster}) | hit.query


def _row(context: PageContext, number: int, hit: SearchHit) -> None:
    with st.container(key=f"plain-hit-{number}", horizontal=True, gap="small", vertical_alignment="center"):
        layout.link(hit.page, f"{hit.kind} {literal(hit.text)}", icon=_ICONS[hit.kind], **_query(context, hit))
        st.caption(literal(hit.detail) if hit.detail else "", width="content")


def _hits(context: PageContext, text: str) -> list[SearchHit]:
    url, cluster = context.settings.exporter, context.cluster
    state = cache.exporter_state(url)
    response = state.findings.response
    clusters = [(it.cluster, it.findings) for it in (response.clusters if response else ())]
    lists = _lists(url, cluster) if cluster is not None and text.strip() else (_EMPTY, _EMPTY, _EMPTY)
    snapshot = state.snapshot.of(cluster)
    nodes = [node.name for node in (snapshot.nodes.value or () if snapshot else ())]
    return search_hits.search(text, clusters, cluster, *lists, nodes)


_EMPTY = pd.DataFrame()


def _lists(url: str, cluster: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The queues, consumers and connections of a cluster, in the lists that other pages read too."""
    queues, consumers, channels, connections = (
        cache.object_list(url, cluster, name, columns).rows
        for name, columns in (
            ("queues", queue_rows.COLUMNS),
            ("consumers", consumer_rows.CONSUMER_COLUMNS),
            ("channels", consumer_rows.CHANNEL_COLUMNS),
            ("connections", consumer_rows.CONNECTION_COLUMNS),
        )
    )
    return queues, consumer_rows.consumer_rows(consumers, channels, connections), connections
