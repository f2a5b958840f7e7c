"""Charts of the recent history, to see when a problem started and what changed at the same time."""

import streamlit as st

from ackscope.clock import Instant
from dashboard.charts import theme
from dashboard.format.escape import literal
from dashboard.frames.minute_frames import Axis, Range
from dashboard.settings import PageSettings
from dashboard.ui import cache, elements, layout

_TITLES = {
    "outcomes": (
        "Probe messages {per}",
        "Outcomes of all probe messages. Messages in the lower part would be missing for a client.",
    ),
    "batches": (
        "Ack batch size",
        "Messages that the broker confirms at once: the line is the mean, crosses are the largest batches.",
    ),
    "redelivered": (
        "Redelivered messages {per}",
        "Messages delivered again because consumers crashed, rejected them or did not acknowledge.",
    ),
}
# Chart -> (title, explanation).


def render(settings: PageSettings, cluster: str, span: Range, now: Instant) -> None:
    """All charts of one cluster."""
    axis = Axis.until(now.utc, span, layout.current_zone())
    charts = cache.recent_charts(settings.rollups, cluster, axis)
    if charts.problem is not None:
        with st.container(key="plain-history-problem"):
            st.warning(f"Cannot read the history: {literal(charts.problem)}", icon=":material/warning:")
        return
    if not charts.others:
        elements.no_history(settings, span, has_history=charts.has_history)
        return
    for column, (name, figure) in zip(
        st.columns(max(len(charts.latency), 1), gap="medium"), charts.latency.items(), strict=False
    ):
        with column:
            meaning = "From publish to the broker's confirm."
            elements.titled_chart(f"Confirm latency, {literal(name)}", meaning, figure, f"latency-{name}", axis.end)
    for column, (name, (template, meaning)) in zip(
        st.columns(len(_TITLES), gap="medium"), _TITLES.items(), strict=True
    ):
        with column:
            title = template.format(per=theme.per_step(axis))
            elements.titled_chart(title, meaning, charts.others[name], name, axis.end)
    if "depth" in charts.others:
        meaning = "Ready: not delivered to a consumer. Unacked: delivered, not acknowledged yet."
        elements.titled_chart("Deepest queues", meaning, charts.others["depth"], "depth", axis.end)
    else:
        st.caption("Deepest queues: all queues were empty in this time.")
