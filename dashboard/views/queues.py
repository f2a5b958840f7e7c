"""The page "Queues": all queues, searchable, most urgent first."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from dashboard.charts import sparkline
from dashboard.format import queue_age, readable
from dashboard.frame.scripts import TABLE_LINKS
from dashboard.frames import queue_rows
from dashboard.ui import cache, elements, queue_table
from dashboard.ui.layout import PageContext, current_zone, get_param, page_heading, search_box, select, set_param
from dashboard.views import queue

MEANING = "all queues, most urgent first"
# Rows of the table; rendering more takes the browser seconds.
_SHOWN = 300
# Rows with sparklines.
_TRENDS = 200


def render(context: PageContext) -> None:
    """The list, or one queue if the address has one (`?queue=`, `&vhost=`)."""
    name = st.query_params.get("queue")
    if name is None or context.cluster is None:
        page_heading("Queues", MEANING)
    else:
        page_heading("Queue", "its findings, rates, backlog, flow and consumers")
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    if name is not None:
        queue.render(context, st.query_params.get("vhost", "/"), name)
        return
    text, sort, own = _filters()
    _list(context, text, sort, own=own)


def _filters() -> tuple[str, str, bool]:
    search, order, own_box = st.columns([5, 2, 2], vertical_alignment="bottom")
    text = search_box(search, "find-queue", "name, vhost or finding; regex works")
    keys = list(queue_rows.SORTS)
    sort = select(order, "Sort by", keys, "sort", "sort-queues", words=queue_rows.SORTS.__getitem__)
    own = own_box.toggle(
        "Queues of probes",
        value=get_param("own") == "1",
        key="own-queues",
        on_change=lambda: set_param("own", "1" if st.session_state["own-queues"] else None),
    )
    return text, sort, own


@st.fragment(run_every="10s")
def _list(context: PageContext, text: str, sort: str, *, own: bool) -> None:
    listed = cache.object_list(context.settings.exporter, context.cluster or "", "queues", queue_rows.COLUMNS)
    if not listed.known:
        elements.plain("no-queues", f"No queue data: {listed.problem or 'not polled yet'}.")
        return
    every = queue_rows.queue_rows(listed.rows, cache.current_findings(context.settings.exporter, context.cluster))
    rows = every if own else every[~every["own"]]
    found, problem = queue_rows.matching(rows, text)
    ordered = queue_rows.sorted_by(found, sort).head(_SHOWN)
    _summary(every, rows, found, ordered, listed.age_seconds)
    if problem:
        elements.plain("pattern", problem)
    if listed.problem:
        elements.plain("queues-problem", f"The latest poll failed: {listed.problem}. Showing the previous data.")
    waiting = ordered["ready"] + ordered["unacked"]
    shown = ordered.assign(
        oldest_text=_texts(queue_age.oldest_words, ordered["oldest"], ordered["oldest_at_most"], waiting),
        empties_text=_texts(
            queue_age.empties_words, ordered["empties"], waiting, ordered["published"], ordered["acked"]
        ),
        **_trends(context, ordered),
    )
    with st.container(key=queue_table.KEY):
        st.html(TABLE_LINKS, unsafe_allow_javascript=True)
        st.html(queue_table.queue_table(shown, sort, st.query_params.to_dict()))
    elements.download("all", lambda: found.drop(columns=["urgency", "own"]))


def _texts(words: Callable[..., str], *columns: pd.Series) -> pd.Series:
    """What `words` says about each row."""
    return pd.Series([words(*it) for it in zip(*columns, strict=True)], index=columns[0].index, dtype=object)


def _trends(context: PageContext, ordered: pd.DataFrame) -> dict[str, pd.Series]:
    """Sparklines of the rows shown; the exporter is asked for these only, whatever the number of all queues."""
    keys = tuple(zip(ordered["vhost"], ordered["queue"], strict=True))[:_TRENDS]
    url, cluster = context.settings.exporter, context.cluster or ""
    report = cache.recent_series(url, cluster, "queues", keys, ("ready", "unacked", "ack"))
    known = {(it.vhost, it.name): {line.name: line.line for line in it.lines} for it in report.objects}
    lines = [known.get(key, {}) for key in zip(ordered["vhost"], ordered["queue"], strict=True)]
    # Rows beyond those asked for have a dash: nothing is known of them here.
    backlog: list[str | None] = [None] * len(lines)
    acked = list(backlog)
    for row, it in enumerate(lines[:_TRENDS]):
        messages = sparkline.total(it.get("ready", ()), it.get("unacked", ()))
        backlog[row] = sparkline.cell(messages, sparkline.QUEUE_SECONDS)
        acked[row] = sparkline.cell(it.get("ack", ()), sparkline.QUEUE_SECONDS)
    return {
        "backlog_trend": pd.Series(backlog, index=ordered.index, dtype=object),
        "acked_trend": pd.Series(acked, index=ordered.index, dtype=object),
    }


def _summary(
    every: pd.DataFrame, rows: pd.DataFrame, found: pd.DataFrame, shown: pd.DataFrame, age: float | None
) -> None:
    total = readable.queues(len(every), int(every["own"].sum()))
    match = "" if len(found) == len(rows) else f", {readable.count(len(found))} match"
    part = "" if len(shown) == len(found) else f", showing the first {len(shown)}"
    old = "" if age is None else f", as of {readable.duration(age)} ago"
    moment = readable.clock(SystemClock().now().wall - (age or 0), SystemClock().now().wall, current_zone())
    how = "Select a row for the details of a queue, a heading to sort. A dash means unknown."
    st.caption(f"{total}{match}{part}{old} ({moment}). {how}")
