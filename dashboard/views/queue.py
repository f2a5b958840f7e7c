"""Details of one queue: findings, metrics and consumers."""

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from ackscope.reports import FindingReport, flat_reports
from dashboard.data.model import ClusterFindings
from dashboard.format import queue_age, readable
from dashboard.format.escape import literal
from dashboard.frames import queue_rows
from dashboard.ui import cache, consumer_table, elements, finding_cards
from dashboard.ui.layout import PageContext, link


def render(context: PageContext, vhost: str, name: str) -> None:
    """Show the queue, with a button back to the list."""
    if st.button("All queues", icon=":material/arrow_back:", type="tertiary"):
        for key in ("queue", "vhost"):
            if key in st.query_params:
                del st.query_params[key]
        st.rerun()
    st.header(literal(name), anchor=False)
    link("topology", "Topology", queue=name, vhost=vhost)
    elements.plain("queue-vhost", f"queue in virtual host {vhost}")
    _now(context, vhost, name)


@st.fragment(run_every="10s")
def _now(context: PageContext, vhost: str, name: str) -> None:
    cluster, url = context.cluster or "", context.settings.exporter
    state, now = cache.exporter_state(url), SystemClock().now()
    known = state.findings.of(cluster)
    every = known.findings if known else ()
    listed = cache.object_list(url, cluster, "queues", queue_rows.COLUMNS)
    rows = queue_rows.queue_rows(listed.rows, every)
    mine = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
    if mine.empty:
        why = listed.problem or ("it does not exist now" if listed.known else "not polled yet")
        elements.plain("no-queue", f"No data of this queue: {why}.")
    else:
        _metrics(mine.iloc[0])
    about = tuple(finding for finding in every if _is_about(finding, vhost, name))
    if about:
        vitals = state.vitals.of(cluster)
        subjects = vitals.subjects if vitals else ()
        finding_cards.render(
            ClusterFindings(cluster=cluster, findings=about), state.findings.exporter_time(now), subjects=subjects
        )
    elif known is not None:
        st.caption("No findings for this queue.")
    _consumers(context, vhost, name)


def _is_about(finding: FindingReport, vhost: str, name: str) -> bool:
    subjects = (it.subject for it in flat_reports((finding,)))
    return any((it.kind, it.vhost, it.name) == ("queue", vhost, name) for it in subjects)


def _metrics(row: pd.Series) -> None:
    metrics = {
        "Ready": row["ready"],
        "Unacked": row["unacked"],
        "Consumers": row["consumers"],
        "Published /s": row["published"],
        "Delivered /s": row["delivered"],
        "Acked /s": row["acked"],
        "Redelivered /s": row["redelivered"],
    }
    with st.container(horizontal=True, gap="small"):
        for what, value in metrics.items():
            with st.container(width=128):
                absent = pd.isna(value)
                rate = what.endswith("/s")
                st.metric(what, fmt.ABSENT if absent else f"{value:,.1f}" if rate else readable.count(value))
    _age(row)
    statistics = "not polled yet" if pd.isna(row["seen"]) else f"{readable.duration(row['seen'])} old"
    words = [str(row[name]) for name in ("type", "state", "node") if row[name]]
    elements.plain("queue-facts", ", ".join([*words, f"statistics {statistics}"]))


def _age(row: pd.Series) -> None:
    """How old the oldest message is, and when the queue will be empty."""
    age, empties = queue_age.oldest(row["oldest"], row["oldest_at_most"]), queue_age.empties(row["empties"])
    said = [] if age is None else [f"oldest message {age} old"]
    said += [] if empties is None else [f"empty in {empties} at the present rate"]
    why = queue_age.reasons(row["oldest_reasons"].split())
    text = ", ".join(said) or ("age of the oldest message unknown" if why else "")
    if text:
        elements.plain("queue-age", f"{text} ({why})" if why else text)


def _consumers(context: PageContext, vhost: str, name: str) -> None:
    rows = consumer_table.load(context)
    if rows is None:
        return
    mine = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
    st.subheader(fmt.plural(len(mine), "consumer").capitalize(), anchor=False)
    if len(mine):
        consumer_table.show(mine, "queue-consumers", without=("queue",))
        elements.download("consumers", lambda: mine)
    else:
        st.caption("This queue has no consumer.")
