"""The page "Queues": ten thousand of them, found in a keystroke, what hurts first."""

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Finding
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.frames import queue_rows
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext, choose, find, keep, wanted, zone
from dashboard.views import queue

_SHOWN = 300
"""Rows of one table: more cost the browser seconds, and nobody reads them."""

_FORMAT = {
    "finding": st.column_config.TextColumn("Finding", help="what diagnosis says of it", width="medium"),
    "queue": st.column_config.TextColumn("Queue", width="medium"),
    "vhost": st.column_config.TextColumn("Vhost", width="small"),
    "type": st.column_config.TextColumn("Type", width="small"),
    "ready": st.column_config.NumberColumn("Ready", help="messages that wait for a consumer", format="localized"),
    "unacked": st.column_config.NumberColumn(
        "Unacked", help="messages with a consumer that has not acknowledged them", format="localized"
    ),
    "consumers": st.column_config.NumberColumn("Consumers", format="localized"),
    "published": st.column_config.NumberColumn("In /s", help="messages published a second", format="%.1f"),
    "acked": st.column_config.NumberColumn("Acked /s", help="messages acknowledged a second", format="%.1f"),
    "growing": st.column_config.NumberColumn(
        "Growing /s", help="by how many a second its messages, ready and unacked, became more lately", format="%.1f"
    ),
    "redelivered": st.column_config.NumberColumn("Redelivered /s", help="messages delivered again", format="%.1f"),
    "share": st.column_config.ProgressColumn(
        "Of all messages", help="share of all messages of the cluster", format="%.0f %%", min_value=0, max_value=100
    ),
    "state": st.column_config.TextColumn("State", width="small"),
    "seen": st.column_config.NumberColumn("Age, s", help="how old its statistics are, seconds", format="%.0f"),
}


def render(place: PageContext) -> None:
    """The list, or one queue where the address names it (`?queue=`, `&vhost=`)."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    name = st.query_params.get("queue")
    if name is not None:
        queue.render(place, st.query_params.get("vhost", "/"), name)
        return
    text, sort, own = _asked()
    _list(place, text, sort, own=own)


def _asked() -> tuple[str, str, bool]:
    words, order, ours = st.columns([5, 2, 2], vertical_alignment="bottom")
    text = find(words, "find-queue", "part of a queue's name, virtual host or finding; a regular expression works")
    keys = list(queue_rows.SORTS)
    sort = choose(order, "First", keys, "sort", "sort-queues", words=queue_rows.SORTS.__getitem__)
    own = ours.toggle(
        "Probes' own queues",
        value=wanted("own") == "1",
        key="own-queues",
        on_change=lambda: keep("own", "1" if st.session_state["own-queues"] else None),
    )
    return text, sort, own


@st.fragment(run_every="10s")
def _list(place: PageContext, text: str, sort: str, *, own: bool) -> None:
    listed = cache.listed(place.settings.exporter, place.cluster or "", "queues", queue_rows.COLUMNS)
    if not listed.known:
        elements.plain("no-queues", f"Queues are not known: {listed.problem or 'not read yet'}.")
        return
    rows = queue_rows.queue_rows(listed.rows, findings_of(place))
    if not own:
        rows = rows[~rows["own"]]
    found, problem = queue_rows.matching(rows, text)
    ordered = queue_rows.sorted_by(found, sort).head(_SHOWN)
    _told(rows, found, ordered, listed.age_seconds)
    if problem:
        elements.plain("pattern", problem)
    if listed.problem:
        elements.plain("queues-problem", f"The latest reading failed: {listed.problem}. These are the ones before.")
    shown = ordered.assign(
        **{name: ordered[name].map(lambda value: visible(str(value or ""))) for name in ("queue", "vhost", "finding")}
    )
    chosen = st.dataframe(
        shown,
        column_order=list(_FORMAT),
        column_config=_FORMAT,
        hide_index=True,
        height=min(36 * (len(shown) + 1) + 2, 700),
        on_select="rerun",
        selection_mode="single-row",
        placeholder=readable.ABSENT,
        key="queue-table",
    )
    picked = chosen["selection"]["rows"]
    if picked:
        row = ordered.iloc[picked[0]]
        st.query_params["queue"], st.query_params["vhost"] = row["queue"], row["vhost"]
        st.rerun(scope="app")
    elements.save("all", lambda: found.drop(columns=["urgency", "own"]))


def findings_of(place: PageContext) -> tuple[Finding, ...]:
    """What diagnosis says of this cluster now."""
    known = cache.live(place.settings.exporter).findings.of(place.cluster)
    return known.findings if known else ()


def _told(rows: pd.DataFrame, found: pd.DataFrame, shown: pd.DataFrame, age: float | None) -> None:
    total = f"{readable.count(len(rows))} queues"
    match = "" if len(found) == len(rows) else f", {readable.count(len(found))} match"
    part = "" if len(shown) == len(found) else f", the first {len(shown)} are shown"
    old = "" if age is None else f", as of {readable.span(age)} ago"
    moment = readable.clock(SystemClock().now().wall - (age or 0), SystemClock().now().wall, zone())
    st.caption(f"{total}{match}{part}{old} ({moment}). Select a row for all of one queue. A dash: not known.")
