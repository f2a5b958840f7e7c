"""The page "Redeliveries": what is delivered again and again, why, and where dead letters go."""

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Finding, flat
from dashboard.charts import layered_graph, minute_charts, theme
from dashboard.data.model import ClusterFindings
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.frames import dead_letters, minute_frames, queue_rows
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements, finding_cards
from dashboard.ui.layout import PageContext, choose_range
from dashboard.views.now.recent_charts import chart, empty
from dashboard.views.queues import findings_of

_LOOPS = frozenset(
    {
        "requeue-loop",
        "poison-drop",
        "dead-letter-cycle",
        "dlq-filling",
        "dlx-missing",
        "bad-ack-loop",
        "consumer-ack-timeout",
        "consumer-flapping",
    }
)
_DRAWN = 25
"""Dead-letter steps that are drawn; more are told in the table only."""

_FORMAT = {
    "queue": st.column_config.TextColumn("Queue", width="medium"),
    "vhost": st.column_config.TextColumn("Vhost", width="small"),
    "redelivered": st.column_config.NumberColumn("Redelivered /s", help="over the last half minute", format="%.2f"),
    "ratio": st.column_config.ProgressColumn(
        "Of all deliveries",
        help="how many of the deliveries were repeated ones",
        format="%.0f %%",
        min_value=0,
        max_value=100,
    ),
    "delivered": st.column_config.NumberColumn("Delivered /s", format="%.1f"),
    "acked": st.column_config.NumberColumn("Acked /s", format="%.1f"),
    "unacked": st.column_config.NumberColumn("Unacked", format="localized"),
    "finding": st.column_config.TextColumn("Finding", width="medium"),
}


def render(place: PageContext) -> None:
    """Rates by queue, suspects, the dead-letter paths, and the past."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    _now(place)
    _past(place, choose_range("Redeliveries over time"))


@st.fragment(run_every="10s")
def _now(place: PageContext) -> None:
    listed = cache.listed(place.settings.exporter, place.cluster or "", "queues", queue_rows.COLUMNS)
    found = findings_of(place)
    st.subheader("Delivered again", anchor=False)
    if not listed.known:
        elements.plain("no-queues", f"Queues are not known: {listed.problem or 'not read yet'}.")
        return
    rows = queue_rows.queue_rows(listed.rows, found)
    rows["ratio"] = 100 * rows["redelivered"] / rows["delivered"].where(rows["delivered"] > 0)
    rows = rows[~rows["own"]]
    again = rows[rows["redelivered"] > 0].sort_values(["redelivered", "queue"], ascending=[False, True])
    if again.empty:
        told = int(rows["redelivered"].notna().sum())
        st.caption(f"No queue redelivered anything in the last half minute ({readable.plural(told, 'queue')} told).")
    else:
        shown = again.head(100)
        shown = shown.assign(**{name: shown[name].map(visible) for name in ("queue", "vhost", "finding")})
        st.dataframe(
            shown,
            column_order=list(_FORMAT),
            column_config=_FORMAT,
            hide_index=True,
            placeholder=readable.ABSENT,
            key="redelivered-table",
        )
        st.caption(
            "A redelivery is a message that a consumer had and gave back: it was rejected with requeue, its channel "
            "closed, or its acknowledgement came too late. A dash: not known."
        )
        elements.save("queues", lambda: again.drop(columns=["urgency", "own"]))
    _suspects(place, found)
    _dead_letters(place)


def _suspects(place: PageContext, found: tuple[Finding, ...]) -> None:
    suspects = tuple(it for it in found if any(each.rule in _LOOPS for each in flat((it,))))
    if suspects:
        st.subheader("Suspects", anchor=False)
        feed = cache.live(place.settings.exporter).findings
        finding_cards.render(
            ClusterFindings(cluster=place.cluster or "", findings=suspects),
            feed.present(SystemClock().now()),
            open_cards=0,
        )


def _dead_letters(place: PageContext) -> None:
    st.subheader("Where dead letters go", anchor=False)
    url, cluster = place.settings.exporter, place.cluster or ""
    queues = cache.listed(url, cluster, "queues", dead_letters.COLUMNS)
    bindings = cache.listed(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    steps = dead_letters.paths(queues.rows, bindings.rows if bindings.known else None)
    if not steps:
        st.caption("No queue has a dead-letter exchange: what is rejected, expires or overflows is gone.")
        return
    sources = list(dict.fromkeys(f"{it.queue} ({it.vhost})" for it in steps[:_DRAWN]))
    exchanges = list(dict.fromkeys(_exchange(it) for it in steps[:_DRAWN]))
    targets = list(dict.fromkeys(_target(it) for it in steps[:_DRAWN]))
    edges = {(f"{it.queue} ({it.vhost})", _exchange(it), "") for it in steps[:_DRAWN]}
    edges |= {(_exchange(it), _target(it), "") for it in steps[:_DRAWN]}
    elements.chart(
        layered_graph.layered(
            (sources, exchanges, targets),
            sorted(edges),
            (minute_charts.QUEUE_TYPES["classic"], theme.OTHER, minute_charts.UNACKED),
        ),
        "dead-letters",
        "Left queues, in the middle their dead-letter exchanges, right the queues that get the dead letters.",
    )
    ready = dict(
        zip(zip(queues.rows["vhost"], queues.rows["name"], strict=True), queues.rows["messages_ready"], strict=True)
    )
    rows = [
        {
            "Queue": f"{it.queue} ({it.vhost})",
            "Dead-letter exchange": it.exchange or "default exchange",
            "Gets them": it.target or it.why,
            "Ready there": readable.count(ready.get((it.vhost, it.target)) if it.target else None),
        }
        for it in steps
    ]
    elements.table("dead-letters", rows[:100])
    elements.save("dead-letters", lambda: pd.DataFrame(rows))


def _exchange(step: dead_letters.DeadLetterRoute) -> str:
    return f"exchange {step.exchange or '(default)'} ({step.vhost})"


def _target(step: dead_letters.DeadLetterRoute) -> str:
    return f"gets them: {step.target}" if step.target else step.why


@st.fragment(run_every="30s")
def _past(place: PageContext, span: minute_frames.Range) -> None:
    axis = Axis.until(SystemClock().now().utc, span, place.zone)
    history = cache.history(place.settings.rollups, place.cluster or "", *axis.utc)
    if history.redelivered.empty:
        empty(place.settings, span, begun=history.begun)
        return
    sums = minute_frames.redelivered(history.redelivered, axis)
    chart(
        f"Redelivered messages {theme.per(axis)}",
        "All queues together.",
        minute_charts.redelivered(sums, axis),
        "page-redelivered",
        axis.end,
    )
    elements.save("over-time", lambda: sums.rename_axis("at").reset_index(), "Save these figures (CSV)")
