"""The page "History", for post-mortems: changes, recurring findings, worst queues, capacity forecast."""

import streamlit as st

from ackscope.clock import SystemClock
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import cache, elements, layout
from dashboard.ui.layout import PageContext, range_heading
from dashboard.views.history import backtest, bands, capacity, changes, recurrences, slo, weeks, worst

# Seconds. The reports are updated every hour, so an older one means that an update was missed.
_STALE_AFTER = 2 * 3600 + 600


def render(context: PageContext) -> None:
    """Changes around a time, then the hourly reports, the last backtest, and one queue with its baseline band."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    if not context.settings.has_rollups:
        elements.how_to_record("no-rollups", "", context.settings)
        return
    changes.render(context, context.cluster)
    _reports(context, context.cluster)
    backtest.render(context, context.cluster)
    bands.render(context, context.cluster, range_heading("Queue compared with its baseline"))


@st.fragment(run_every="60s")
def _reports(context: PageContext, cluster: str) -> None:
    found = cache.answers(context.settings.rollups, cluster)
    if found.problem is not None:
        with st.container(key="plain-answers-problem"):
            st.warning(f"Cannot read the reports: {literal(found.problem)}", icon=":material/warning:")
        return
    if not found.document:
        text = f"No reports in {context.settings.rollups} yet. The pipeline computes them every hour:"
        elements.how_to_record("no-answers", text, context.settings)
        return
    _age(found.document.get("made_at"))
    for each in (recurrences, slo, worst, weeks, capacity):
        each.render(found.document)


def _age(made_at: str | None) -> None:
    made, now = readable.parse_iso(made_at), SystemClock().now().wall
    if made is None:
        return
    text = (
        f"Reports below as of {readable.clock(made, now, layout.current_zone())}, {readable.duration(now - made)} ago"
    )
    if now - made > _STALE_AFTER:
        elements.badge(elements.UNKNOWN, f"{text} (stale: is `ackscope pipeline stream` running?)")
    else:
        st.caption(f"{text}; the pipeline updates them every hour.")
