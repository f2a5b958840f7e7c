"""The last hours, from the rollups: when did it begin, and what changed together?"""

from datetime import datetime
from typing import Literal

import streamlit as st
from plotly.graph_objects import Figure

from ackscope.clock import Instant
from dashboard.charts import theme
from dashboard.format.escape import literal
from dashboard.frames.minute_frames import Axis, Range
from dashboard.settings import PageSettings
from dashboard.ui import cache, elements, layout
from dashboard.ui.elements import ChartSelection

_THREE = {
    "outcomes": (
        "Probe messages {per}",
        "Every message of a probe and what became of it. Anything below is a message that a client would miss.",
    ),
    "batches": (
        "Ack batch size",
        "How many messages the broker confirms at once: the line is the mean, a cross the largest batch.",
    ),
    "redelivered": (
        "Redelivered messages {per}",
        "Work done twice: consumers that die, reject, or never acknowledge.",
    ),
}
"""Chart -> its title and what it means."""


def render(settings: PageSettings, cluster: str, span: Range, now: Instant) -> None:
    """All charts of one cluster."""
    axis = Axis.until(now.utc, span, layout.zone())
    past = cache.past(settings.rollups, cluster, axis)
    if past.problem is not None:
        with st.container(key="plain-history-problem"):
            st.warning(f"History cannot be read: {literal(past.problem)}", icon=":material/warning:")
        return
    if not past.others:
        empty(settings, span, begun=past.begun)
        return
    for column, (name, figure) in zip(
        st.columns(max(len(past.latency), 1), gap="medium"), past.latency.items(), strict=False
    ):
        with column:
            told = "From publish to the broker's confirm."
            chart(f"Confirm latency, {literal(name)}", told, figure, f"latency-{name}", axis.end)
    for column, (name, (title, meaning)) in zip(st.columns(len(_THREE), gap="medium"), _THREE.items(), strict=True):
        with column:
            chart(title.format(per=theme.per(axis)), meaning, past.others[name], name, axis.end)
    if "depth" in past.others:
        meaning = "Ready waits for a consumer; unacked is with a consumer that has not acknowledged."
        chart("Deepest queues", meaning, past.others["depth"], "depth", axis.end)
    else:
        st.caption("Deepest queues: no queue held a message in this time.")


def chart(
    title: str, meaning: str, figure: Figure, key: str, at: datetime, *, select: Literal["box", "points"] | None = None
) -> ChartSelection:
    """A figure under its title; `title` is Markdown, `key` unique on the page, `at` the moment up to which it goes."""
    with st.container(key=f"plain-title-{key}", gap="small"):
        st.markdown(f"**{title}**", help=meaning)
        return elements.chart(figure, key, f"{title}. {meaning}", at, select=select)


def empty(settings: PageSettings, span: Range, *, begun: bool) -> None:
    """Say that there is no history of the span, and how to get one where none was `begun`."""
    if not begun:
        elements.plain(
            "no-history",
            f"No history of this cluster under {settings.rollups} yet. The pipeline writes it, a minute at a time:",
        )
        st.code(f"ackscope pipeline stream --landing DIR --rollups {settings.rollups}", language=None)
    else:
        st.caption(f"No complete minute of history in the last {span.label}.")
