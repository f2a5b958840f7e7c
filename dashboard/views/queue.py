"""Everything about one queue: what is wrong, its rates and backlog over time, its flow, consumers and ledger."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from ackscope.measures import band_basis, band_range
from ackscope.reports import FindingReport, flat_reports
from dashboard.charts import queue_charts
from dashboard.data import notes
from dashboard.data.model import ClusterFindings
from dashboard.data.queue_reports import QueueBand, QueueReport
from dashboard.format import queue_age, queue_settings, readable
from dashboard.format.escape import literal
from dashboard.frames import (
    consumer_rows,
    dead_letters,
    finding_rows,
    flow_graph,
    ledger_rows,
    queue_history,
    queue_rows,
)
from dashboard.frames.minute_frames import Axis, Range
from dashboard.ui import cache, consumer_table, elements, finding_cards, flow_picture
from dashboard.ui.layout import PageContext, current_zone, link, range_heading

_TILE = 108
"""Pixels: the nine tiles fit side by side."""
_FINDINGS = 3
"""Findings shown with their sentence at the top; all of them have a card below."""


def render(context: PageContext, vhost: str, name: str) -> None:
    """Show the queue, with a button back to the list."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="plain-queue-head"):
        if st.button("All queues", icon=":material/arrow_back:", type="tertiary"):
            for key in ("queue", "vhost"):
                if key in st.query_params:
                    del st.query_params[key]
            st.rerun()
        st.header(literal(name), anchor=False, width="content")
        elements.plain("queue-vhost", f"queue in virtual host {vhost}")
        link("topology", "Topology", queue=name, vhost=vhost)
    _now(context, vhost, name)
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _over_time(context, vhost, name, range_heading("Rates and backlog"))
    with right:
        _beside(context, vhost, name)
    _flow(context, vhost, name)
    _in_full(context, vhost, name)


def _findings(context: PageContext, vhost: str, name: str) -> tuple[FindingReport, ...]:
    every = cache.current_findings(context.settings.exporter, context.cluster)
    return tuple(finding for finding in every if _is_about(finding, vhost, name))


def _is_about(finding: FindingReport, vhost: str, name: str) -> bool:
    return any((vhost, name) in finding_rows.queues_of(each) for each in flat_reports((finding,)))


def _report(context: PageContext, vhost: str, name: str) -> QueueReport:
    return cache.queue_report(context.settings.exporter, context.cluster or "", vhost, name)


def _row(context: PageContext, vhost: str, name: str) -> tuple[pd.Series | None, str]:
    """The row of the queue in the list, or why there is none."""
    listed = cache.object_list(context.settings.exporter, context.cluster or "", "queues", queue_rows.COLUMNS)
    mine = listed.rows[(listed.rows["vhost"] == vhost) & (listed.rows["name"] == name)]
    if mine.empty:
        return None, listed.problem or ("it does not exist now" if listed.known else "not polled yet")
    return queue_rows.queue_rows(mine, ()).iloc[0], ""


@st.fragment(run_every="10s")
def _now(context: PageContext, vhost: str, name: str) -> None:
    """What is wrong, and the present values."""
    with st.container(gap="small"):
        _present(context, vhost, name)


def _present(context: PageContext, vhost: str, name: str) -> None:
    row, why = _row(context, vhost, name)
    if row is None:
        elements.plain("no-queue", f"No data of this queue: {why}.")
        return
    statistics = "not polled yet" if pd.isna(row["seen"]) else f"{readable.duration(row['seen'])} old"
    words = [str(row[part]) for part in ("type", "state") if row[part]]
    place = [f"on {row['node']}"] if row["node"] else []
    mine = _findings(context, vhost, name)
    facts = ", ".join([*words, *place, f"statistics {statistics}"])
    elements.plain("queue-facts", facts if mine else f"{facts}. No findings for this queue.")
    for number, finding in enumerate(mine[:_FINDINGS]):
        style = elements.SEVERITIES[finding.severity]
        with st.container(key=f"plain-finding-{number}"):
            st.markdown(
                f":{style.colour}-badge[{style.icon} {style.word}] {literal(finding.rule)}: {literal(finding.summary)}"
            )
    if len(mine) > _FINDINGS:
        st.caption(f"{fmt.plural(len(mine) - _FINDINGS, 'more finding')} below.")
    report = _report(context, vhost, name)
    if report.settings is not None:
        elements.plain("queue-settings", queue_settings.words(report.settings))
    _tiles(row, report)


def _tiles(row: pd.Series, report: QueueReport) -> None:
    """The present values, each with its usual band if there is one."""
    values = {
        "Ready": (row["ready"], "ready", "messages"),
        "Unacked": (row["unacked"], "unacked", "messages"),
        "Published /s": (row["published"], "publish", "rate"),
        "Delivered /s": (row["delivered"], "deliver", "rate"),
        "Acked /s": (row["acked"], "ack", "rate"),
        "Redelivered /s": (row["redelivered"], "redeliver", "rate"),
        "Consumers": (row["consumers"], "", ""),
    }
    with st.container(horizontal=True, gap="small", key="queue-tiles"):
        for what, (value, series, unit) in values.items():
            with st.container(width=_TILE, gap=None):
                rate = unit == "rate"
                absent = pd.isna(value)
                st.metric(what, fmt.ABSENT if absent else f"{value:,.1f}" if rate else readable.count(value))
                usual = _usual(report.usual.get(series), unit)
                if usual:
                    st.caption(usual)
        _age_tiles(row)
    why = queue_age.reasons(row["oldest_reasons"].split())
    if why:
        elements.plain("queue-age", f"Age of the oldest message: {why}.")


def _usual(band: QueueBand | None, unit: str) -> str | None:
    if band is None or band.low is None or band.high is None:
        return None
    return f"usual {band_range(max(0.0, band.low), band.high, unit)}"


def _age_tiles(row: pd.Series) -> None:
    waiting = row["ready"] + row["unacked"]
    with st.container(width=_TILE + 50, gap=None):
        st.metric(
            "Oldest message",
            queue_age.oldest_words(row["oldest"], row["oldest_at_most"], waiting),
            help="age of the oldest message between two bounds, from the flow of messages",
        )
    with st.container(width=_TILE + 38, gap=None):
        shown = queue_age.empties_words(row["empties"], waiting, row["published"], row["acked"])
        st.metric("Time to empty", shown, help="time until the queue is empty at the present rate")


def _usual_notes(report: QueueReport) -> list[str]:
    """What the bands are computed from, or why there is none."""
    reasons = {band.because: None for band in report.usual.values() if band.because}
    bases = {band_basis(band.scope, band.values): None for band in report.usual.values() if band.low is not None}
    return [*(f"Usual values {text}." for text in reasons), *(f"Usual: {text}." for text in bases)]


@st.fragment(run_every="10s")
def _over_time(context: PageContext, vhost: str, name: str, span: Range) -> None:
    now = SystemClock().now().utc
    # The present minute is not over: the exporter's readings fill it.
    axis = Axis.until(now + pd.Timedelta(minutes=1), span, context.zone)
    root, cluster = context.settings.rollups, context.cluster or ""
    found = cache.queue_bands(root, cluster, vhost, name, *axis.utc)
    report = _report(context, vhost, name)
    alone = found.minutes.empty
    if alone and span.live:
        axis = queue_history.since_readings(report.lines, report.at, axis)
    series = queue_history.series(found.minutes, report.lines, report.at, axis)
    if all(values.isna().all() for values in series.values()):
        elements.plain("no-series", f"No data of this queue {span.words(context.zone)}.")
        return
    episodes = cache.changes(root, cluster, *axis.utc).episodes
    written: tuple[notes.Note, ...] = ()
    if context.settings.notes is not None:
        start, end = (moment.timestamp() for moment in axis.utc)
        written, _ = notes.read(context.settings.notes, cluster, start, end)
    marks = (
        *queue_history.finding_marks(_findings(context, vhost, name), episodes, vhost, name, axis),
        *queue_history.note_marks(written, axis),
        *queue_history.consumer_marks(series["consumers"]),
    )
    bands = queue_history.bands(found.minutes, found.bands, axis, queue_charts.BANDED)
    with st.container(key="plain-title-queue-history"):
        elements.chart(
            queue_charts.history(series, bands, marks, axis),
            "queue-history",
            "Rates, ready and unacked messages, and consumers of the queue over time.",
            axis.end,
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        elements.plain("queue-notes", " ".join([*_beginning(series, axis, alone=alone), *_usual_notes(report)]))
        elements.download("queue-history", lambda: queue_history.table(series), "CSV")


def _beginning(series: Mapping[str, pd.Series], axis: Axis, *, alone: bool) -> list[str]:
    """How far back the data goes, if that is less than the range or `alone`: without any minute of the history."""
    if alone:
        return ["No history of this queue: the exporter keeps the readings of the last 10 min."]
    first = min(at for values in series.values() if (at := queue_history.first_known(values)) is not None)
    if axis.end - first >= 0.8 * (axis.end - axis.start):
        return []
    return [f"Data of this queue starts at {readable.minute(first, current_zone(), '%H:%M')}."]


@st.fragment(run_every="10s")
def _beside(context: PageContext, vhost: str, name: str) -> None:
    """Prefetch and ledger."""
    rows = consumer_table.load(context)
    if rows is not None:
        mine = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
        st.markdown("**Unacked messages against prefetch**", help="The upright mark is the prefetch.")
        if mine.empty:
            st.caption("This queue has no consumer.")
        else:
            shown = consumer_rows.prefetch_rows(mine)
            elements.chart(
                queue_charts.prefetch_bars(shown),
                "prefetch",
                "Unacknowledged messages of each channel that consumes from the queue, and its prefetch.",
            )
            channels = mine["channel"].nunique()
            if channels > len(shown):
                st.caption(f"The fullest {len(shown)} of {channels} channels.")
    report = _report(context, vhost, name)
    reason = report.problem or ledger_rows.reason(report.ledger)
    span = "" if report.ledger.seconds is None else f", last {readable.duration(report.ledger.seconds)}"
    st.markdown(
        f"**Ledger{span}**",
        help="In = out + stored + lost, from the broker's counters. Lost is what the delay between counters cannot "
        "explain.",
    )
    if reason:
        elements.plain("no-ledger", f"No ledger: {reason}.")
        return
    elements.table("ledger", ledger_rows.rows(report.ledger))


@st.fragment(run_every="15s")
def _flow(context: PageContext, vhost: str, name: str) -> None:
    row, _ = _row(context, vhost, name)
    if row is None:
        return
    graph = queue_graph(context, vhost, name, row)
    title = "Where its messages come from and go to" if graph.sure else "Where its messages may come from, and go to"
    flow_picture.show(graph, title, "flow")


def queue_graph(context: PageContext, vhost: str, name: str, row: pd.Series) -> flow_graph.FlowGraph:
    """The neighbourhood of a queue; `row` is its row of `queue_rows`."""
    url, cluster = context.settings.exporter, context.cluster or ""
    bindings = cache.object_list(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    queues = cache.object_list(url, cluster, "queues", dead_letters.COLUMNS)
    consumers = consumer_table.load(context)
    if consumers is None:
        consumers = consumer_rows.none()
    published = None if pd.isna(row["published"]) else float(row["published"])
    details: tuple[str, ...] = (
        f"{readable.count(row['ready'])} ready, {readable.count(row['unacked'])} unacked"
        if not pd.isna(row["ready"])
        else "messages unknown",
        flow_graph.per_second(published, "in"),
    )
    rules = list(dict.fromkeys(it.rule for it in _findings(context, vhost, name)))
    details += (f"finding: {', '.join(rules)}",) if rules else ()
    graph = flow_graph.of_queue(
        vhost,
        name,
        bindings.rows,
        consumers,
        dead_letters.routes(queues.rows, bindings.rows if bindings.known else None),
        flow_picture.traffic(context, vhost),
        published=published,
        details=details,
        sick=bool(rules),
        writers=flow_picture.writers(context) if row["type"] == "stream" else None,
    )
    if bindings.known:
        return graph
    unknown = "Bindings are unknown: there are too many to store, or they were not polled yet."
    return flow_graph.FlowGraph(graph.columns, graph.boxes, graph.lines, (*graph.notes, unknown))


@st.fragment(run_every="10s")
def _in_full(context: PageContext, vhost: str, name: str) -> None:
    """Cards of all findings, and the table of consumers."""
    state, now = cache.exporter_state(context.settings.exporter), SystemClock().now()
    about = _findings(context, vhost, name)
    if about:
        st.subheader(fmt.plural(len(about), "finding").capitalize(), anchor=False)
        vitals = state.vitals.of(context.cluster)
        subjects = vitals.subjects if vitals else ()
        mine = ClusterFindings(cluster=context.cluster or "", findings=about)
        finding_cards.render(mine, state.findings.exporter_time(now), subjects=subjects)
    rows = consumer_table.load(context)
    if rows is None:
        return
    consumers = rows[(rows["vhost"] == vhost) & (rows["queue"] == name)]
    st.subheader(fmt.plural(len(consumers), "consumer").capitalize(), anchor=False)
    if len(consumers):
        consumer_table.show(context, consumers, "queue-consumers", without=("queue",))
        elements.download("consumers", lambda: consumers.drop(columns=["urgency"]))
    else:
        st.caption("This queue has no consumer.")
