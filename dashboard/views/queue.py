"""All of one queue: what is wrong with it, what it holds, who consumes from it."""

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Finding, flat
from dashboard.data.model import ClusterFindings
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.frames import consumer_rows, queue_rows
from dashboard.ui import cache, consumer_table, elements, finding_cards
from dashboard.ui.layout import PageContext, link


def render(place: PageContext, vhost: str, name: str) -> None:
    """The whole of it, with a way back to the list."""
    if st.button("All queues", icon=":material/arrow_back:", type="tertiary"):
        for key in ("queue", "vhost"):
            if key in st.query_params:
                del st.query_params[key]
        st.rerun()
    st.header(literal(name), anchor=False)
    link("topology", "What is around it", queue=name, vhost=vhost)
    elements.plain("queue-vhost", f"queue in virtual host {vhost}")
    _now(place, vhost, name)


@st.fragment(run_every="10s")
def _now(place: PageContext, vhost: str, name: str) -> None:
    cluster, url = place.cluster or "", place.settings.exporter
    live, now = cache.live(url), SystemClock().now()
    known = live.findings.of(cluster)
    every = known.findings if known else ()
    listed = cache.listed(url, cluster, "queues", queue_rows.COLUMNS)
    rows = queue_rows.queue_rows(listed.rows, every)
    mine = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
    if mine.empty:
        why = listed.problem or ("it is not there now" if listed.known else "queues were not read yet")
        elements.plain("no-queue", f"Nothing is known of this queue: {why}.")
    else:
        _figures(mine.iloc[0])
    about = tuple(finding for finding in every if _is_about(finding, vhost, name))
    if about:
        load = live.vitals.of(cluster)
        subjects = load.subjects if load else ()
        finding_cards.render(
            ClusterFindings(cluster=cluster, findings=about), live.findings.present(now), subjects=subjects
        )
    elif known is not None:
        st.caption("No finding is about this queue.")
    _consumers(place, vhost, name)


def _is_about(finding: Finding, vhost: str, name: str) -> bool:
    subjects = (it.subject for it in flat((finding,)))
    return any((it.kind, it.vhost, it.name) == ("queue", vhost, name) for it in subjects)


def _figures(row: pd.Series) -> None:
    figures = {
        "Ready": row["ready"],
        "Unacked": row["unacked"],
        "Consumers": row["consumers"],
        "Published /s": row["published"],
        "Delivered /s": row["delivered"],
        "Acked /s": row["acked"],
        "Redelivered /s": row["redelivered"],
    }
    with st.container(horizontal=True, gap="small"):
        for what, value in figures.items():
            with st.container(width=128):
                absent = pd.isna(value)
                rate = what.endswith("/s")
                st.metric(what, readable.ABSENT if absent else f"{value:,.1f}" if rate else readable.count(value))
    seen = "not read yet" if pd.isna(row["seen"]) else f"{readable.span(row['seen'])} old"
    words = [str(row[name]) for name in ("type", "state", "node") if row[name]]
    elements.plain("queue-facts", ", ".join([*words, f"statistics {seen}"]))


def _consumers(place: PageContext, vhost: str, name: str) -> None:
    rows = consumers_of(place)
    if rows is None:
        return
    mine = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
    st.subheader(readable.plural(len(mine), "consumer").capitalize(), anchor=False)
    if len(mine):
        consumer_table.show(mine, "queue-consumers", without=("queue",))
        elements.save("consumers", lambda: mine)
    else:
        st.caption("Nobody consumes from this queue.")


def consumers_of(place: PageContext) -> pd.DataFrame | None:
    """The consumers of the cluster; None, and why is said, where they are not known."""
    cluster, url = place.cluster or "", place.settings.exporter
    consumers = cache.listed(url, cluster, "consumers", consumer_rows.CONSUMER_COLUMNS)
    if not consumers.known:
        elements.plain("no-consumers", f"Consumers are not known: {consumers.problem or 'not read yet'}.")
        return None
    channels = cache.listed(url, cluster, "channels", consumer_rows.CHANNEL_COLUMNS)
    connections = cache.listed(url, cluster, "connections", consumer_rows.CONNECTION_COLUMNS)
    return consumer_rows.consumer_rows(consumers.rows, channels.rows, connections.rows)
