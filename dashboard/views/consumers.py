"""The page "Consumers": unacknowledged messages of each consumer and its prefetch limit; connections by name."""

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from dashboard.format import readable
from dashboard.frames import consumer_rows
from dashboard.ui import cache, connection_table, consumer_table, elements
from dashboard.ui.layout import PageContext, search_box


def render(context: PageContext) -> None:
    """Totals, then a table row per consumer; if something is searched, the connections of that name, too."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    text = search_box(st.container(), "find-consumer", "queue, client, host, user, tag or finding")
    _list(context, text)


@st.fragment(run_every="10s")
def _list(context: PageContext, text: str) -> None:
    rows = consumer_table.load(context)
    if rows is None:
        return
    found = _matching(rows, text)
    _totals(found)
    _summary(context, rows, found)
    consumer_table.show(context, found, "consumers")
    _hazards(found)
    elements.download("all", lambda: found.drop(columns=["urgency"]))
    if text:
        connection_table.show(context, text)


def _matching(rows: pd.DataFrame, text: str) -> pd.DataFrame:
    if not text:
        return rows
    needle = text.casefold()
    names = ("queue", "client", "host", "user", "tag", "vhost", "finding")
    hits = rows[list(names)].apply(lambda column: column.str.casefold().str.contains(needle, regex=False))
    found: pd.DataFrame = rows[hits.any(axis=1)]
    return found


def _totals(rows: pd.DataFrame) -> None:
    totals = {
        "Consumers": len(rows),
        "Full": int(rows["limit"].ne("").sum()),
        "Full, no acks": int(rows["limit"].eq(consumer_rows.STANDS_STILL).sum()),
        "No prefetch limit": int(rows["hazard"].eq(consumer_rows.UNLIMITED).sum()),
        "Automatic ack": int(rows["hazard"].eq(consumer_rows.AUTOMATIC).sum()),
        "Not active": int(rows["active"].eq("no").sum()),
    }
    with st.container(horizontal=True, gap="small"):
        for what, value in totals.items():
            with st.container(width=150):
                st.metric(what, readable.count(value))


def _summary(context: PageContext, rows: pd.DataFrame, found: pd.DataFrame) -> None:
    listed = cache.object_list(
        context.settings.exporter, context.cluster or "", "consumers", consumer_rows.CONSUMER_COLUMNS
    )
    match = "" if len(found) == len(rows) else f", {readable.count(len(found))} match"
    old = "" if listed.age_seconds is None else f", as of {readable.duration(listed.age_seconds)} ago"
    st.caption(
        f"{fmt.plural(len(rows), 'consumer')}{match}{old}. Findings first, then the highest share of prefetch. "
        "A dash means unknown."
    )
    if listed.problem:
        elements.plain("consumers-problem", f"The latest poll failed: {listed.problem}. Showing the previous data.")


def _hazards(rows: pd.DataFrame) -> None:
    """Explanations of the risks in the table."""
    if rows["hazard"].eq(consumer_rows.UNLIMITED).any():
        st.caption(
            "No limit: the broker delivers the whole queue to such a consumer, and all of it again when it crashes. "
            "Set a prefetch (basic.qos) before basic.consume."
        )
    if rows["hazard"].eq(consumer_rows.AUTOMATIC).any():
        st.caption(
            "Automatic ack: a message counts as acknowledged when it is sent. Messages that the client has not "
            "processed when it crashes are lost, and prefetch does not limit the broker."
        )
