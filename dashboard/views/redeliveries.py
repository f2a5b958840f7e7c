"""The page "Redeliveries": redelivery rates, findings about loops, and dead-letter routes."""

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from ackscope.reports import FindingReport, flat_reports
from dashboard.charts import layered_graph, minute_charts, theme
from dashboard.data.model import ClusterFindings
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.frames import dead_letters, minute_frames, queue_rows
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements, finding_cards
from dashboard.ui.layout import PageContext, range_heading

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
# Boxes of queues in the picture of dead-letter routes, and rows of its table.
_DRAWN = 25
# Routes up to this number are also shown as a table at once.
_OPEN = 8

_FORMAT = {
    "queue": st.column_config.TextColumn("Queue", width="medium"),
    "vhost": st.column_config.TextColumn("Vhost", width="small"),
    "redelivered": st.column_config.NumberColumn("Redelivered /s", help="over the last 30 s", format="%.1f"),
    "ratio": st.column_config.ProgressColumn(
        "Of all deliveries",
        help="redeliveries as a share of all deliveries",
        format="%.0f %%",
        min_value=0,
        max_value=100,
    ),
    "delivered": st.column_config.NumberColumn("Delivered /s", format="%.1f"),
    "acked": st.column_config.NumberColumn("Acked /s", format="%.1f"),
    "unacked": st.column_config.NumberColumn("Unacked", format="localized"),
    "finding": st.column_config.TextColumn("Finding", width="medium"),
}


def render(context: PageContext) -> None:
    """Rates by queue, findings about loops, the history, and dead-letter routes."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    _now(context)
    _recent(context, range_heading("Redeliveries over time"))
    _dead_letters(context)


@st.fragment(run_every="10s")
def _now(context: PageContext) -> None:
    listed = cache.object_list(context.settings.exporter, context.cluster or "", "queues", queue_rows.COLUMNS)
    found = cache.current_findings(context.settings.exporter, context.cluster)
    st.subheader("Current redeliveries", anchor=False)
    if not listed.known:
        elements.plain("no-queues", f"No queue data: {listed.problem or 'not polled yet'}.")
        return
    rows = queue_rows.queue_rows(listed.rows, found)
    rows["ratio"] = 100 * rows["redelivered"] / rows["delivered"].where(rows["delivered"] > 0)
    rows = rows[~rows["own"]]
    redelivering = rows[rows["redelivered"] > 0].sort_values(["redelivered", "queue"], ascending=[False, True])
    if redelivering.empty:
        reporting = int(rows["redelivered"].notna().sum())
        st.caption(f"No redeliveries in the last 30 s ({fmt.plural(reporting, 'queue')} with data).")
    else:
        shown = redelivering.head(100)
        shown = shown.assign(**{name: shown[name].map(visible) for name in ("queue", "vhost", "finding")})
        st.dataframe(
            shown,
            column_order=list(_FORMAT),
            column_config=_FORMAT,
            hide_index=True,
            placeholder=fmt.ABSENT,
            key="redelivered-table",
        )
        st.caption(
            "A message is redelivered if a consumer rejected it with requeue, if its channel was closed, or if the "
            "acknowledgement timed out. A dash means unknown."
        )
        elements.download("queues", lambda: redelivering.drop(columns=["urgency", "own"]))
    _related_findings(context, found)


def _related_findings(context: PageContext, found: tuple[FindingReport, ...]) -> None:
    related = tuple(it for it in found if any(each.rule in _LOOPS for each in flat_reports((it,))))
    if related:
        st.subheader("Related findings", anchor=False)
        polled = cache.exporter_state(context.settings.exporter).findings
        finding_cards.render(
            ClusterFindings(cluster=context.cluster or "", findings=related),
            polled.exporter_time(SystemClock().now()),
            open_cards=0,
        )


@st.fragment(run_every="30s")
def _dead_letters(context: PageContext) -> None:
    st.subheader("Dead-letter routes", anchor=False)
    url, cluster = context.settings.exporter, context.cluster or ""
    queues = cache.object_list(url, cluster, "queues", dead_letters.COLUMNS)
    bindings = cache.object_list(url, cluster, "bindings", dead_letters.BINDING_COLUMNS)
    routes = dead_letters.lost_first(dead_letters.routes(queues.rows, bindings.rows if bindings.known else None))
    if not routes:
        st.caption("No queue has a dead-letter exchange: messages that are rejected, expire or overflow are lost.")
        return
    boxes = dead_letters.sources(routes)
    names = list(dict.fromkeys(boxes[it.vhost, it.queue] for it in routes))[:_DRAWN]
    drawn = [it for it in routes if boxes[it.vhost, it.queue] in names]
    exchanges = list(dict.fromkeys(_exchange(it) for it in drawn))
    targets = list(dict.fromkeys(_target(it) for it in drawn))
    edges = {(boxes[it.vhost, it.queue], _exchange(it), "") for it in drawn}
    edges |= {(_exchange(it), _target(it), "") for it in drawn}
    figure = layered_graph.layered_graph(
        (names, exchanges, targets),
        sorted(edges),
        (minute_charts.QUEUE_TYPES["classic"], theme.OTHER, minute_charts.UNACKED),
    )
    with st.container(key="plain-title-dead-letters"):
        meaning = "Left: queues. Middle: their dead-letter exchanges. Right: the queues that receive the dead letters."
        elements.chart(figure, "dead-letters", meaning)
    ready = dict(
        zip(zip(queues.rows["vhost"], queues.rows["name"], strict=True), queues.rows["messages_ready"], strict=True)
    )
    rows = [
        {
            "Queue": f"{it.queue} ({it.vhost})",
            "Dead-letter exchange": it.exchange or "default exchange",
            "Target": it.target or it.why,
            "Ready in target": readable.count(ready.get((it.vhost, it.target)) if it.target else None),
        }
        for it in routes
    ]
    with st.expander("As a table", expanded=len(rows) <= _OPEN):
        elements.table("dead-letters", rows[:_DRAWN])
        if len(rows) > _DRAWN:
            st.caption(f"Showing {_DRAWN} of {len(rows):,} routes, those without a target first. The CSV has all.")
    elements.download("dead-letters", lambda: pd.DataFrame(rows))


def _exchange(route: dead_letters.DeadLetterRoute) -> str:
    return f"exchange {route.exchange or '(default)'} ({route.vhost})"


def _target(route: dead_letters.DeadLetterRoute) -> str:
    return f"target: {route.target}" if route.target else route.why


@st.fragment(run_every="30s")
def _recent(context: PageContext, span: minute_frames.Range) -> None:
    axis = Axis.until(SystemClock().now().utc, span, context.zone)
    history = cache.minute_history(context.settings.rollups, context.cluster or "", *axis.utc)
    if history.redelivered.empty:
        elements.no_history(context.settings, span, has_history=history.exists)
        return
    sums = minute_frames.redelivered(history.redelivered, axis)
    elements.titled_chart(
        f"Redelivered messages {theme.per_step(axis)}",
        "Over all queues.",
        minute_charts.redelivered(sums, axis),
        "page-redelivered",
        axis.end,
    )
    elements.download("over-time", lambda: sums.rename_axis("at").reset_index(), "Save this data (CSV)")
