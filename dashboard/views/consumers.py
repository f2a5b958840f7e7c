"""The page "Consumers": who holds what, and how near each is to its ceiling."""

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.frames import consumer_rows
from dashboard.ui import cache, consumer_table, elements
from dashboard.ui.layout import PageContext, find
from dashboard.views.queue import consumers_of

_FULL = 90.0
"""Percent of its prefetch from which a consumer is as good as full."""


def render(place: PageContext) -> None:
    """What is told of all, then a bar each."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    text = find(st.container(), "find-consumer", "part of a queue, client, host, user or tag")
    _list(place, text)


@st.fragment(run_every="10s")
def _list(place: PageContext, text: str) -> None:
    rows = consumers_of(place)
    if rows is None:
        return
    found = _matching(rows, text)
    _figures(found)
    _told(place, rows, found)
    consumer_table.show(found, "consumers")
    _hazards(found)
    elements.save("all", lambda: found)


def _matching(rows: pd.DataFrame, text: str) -> pd.DataFrame:
    if not text:
        return rows
    wanted_ = text.casefold()
    names = ("queue", "client", "host", "user", "tag", "vhost")
    hits = rows[list(names)].apply(lambda column: column.str.casefold().str.contains(wanted_, regex=False))
    found: pd.DataFrame = rows[hits.any(axis=1)]
    return found


def _figures(rows: pd.DataFrame) -> None:
    figures = {
        "Consumers": len(rows),
        "Full": int((rows["held"] >= _FULL).sum()),
        "No prefetch limit": int(rows["hazard"].eq(consumer_rows.UNLIMITED).sum()),
        "Automatic ack": int(rows["hazard"].eq(consumer_rows.AUTOMATIC).sum()),
        "Not active": int(rows["active"].eq("no").sum()),
    }
    with st.container(horizontal=True, gap="small"):
        for what, value in figures.items():
            with st.container(width=150):
                st.metric(what, readable.count(value))


def _told(place: PageContext, rows: pd.DataFrame, found: pd.DataFrame) -> None:
    listed = cache.listed(place.settings.exporter, place.cluster or "", "consumers", consumer_rows.CONSUMER_COLUMNS)
    match = "" if len(found) == len(rows) else f", {readable.count(len(found))} match"
    old = "" if listed.age_seconds is None else f", as of {readable.span(listed.age_seconds)} ago"
    st.caption(f"{readable.plural(len(rows), 'consumer')}{match}{old}. The fullest first. A dash: not known.")
    if listed.problem:
        elements.plain("consumers-problem", f"The latest reading failed: {listed.problem}. These are the ones before.")


def _hazards(rows: pd.DataFrame) -> None:
    """What may go wrong later, in words."""
    if rows["hazard"].eq(consumer_rows.UNLIMITED).any():
        st.caption(
            "No limit: the broker sends such a consumer all that the queue holds; when it dies, all of it is delivered "
            "again. Set a prefetch (basic.qos) before basic.consume."
        )
    if rows["hazard"].eq(consumer_rows.AUTOMATIC).any():
        st.caption(
            "Automatic ack: a message counts as done when it is sent. What the client had not processed when it died "
            "is lost, and prefetch does not slow the broker down."
        )
