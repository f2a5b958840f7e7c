"""The last hours, from the rollups: when did it begin, and what changed together?"""

from datetime import UTC, datetime

import streamlit as st
from plotly.graph_objects import Figure

from ackscope.clock import Instant
from ackscope.tables import ROLLUPS
from dashboard import cache, charts, frames
from dashboard.data.rollups import History
from dashboard.escape import literal
from dashboard.frames import Axis, Range
from dashboard.settings import PageSettings
from dashboard.views import parts

_CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False}


def render(settings: PageSettings, cluster: str, span: Range, now: Instant) -> None:
    """All charts of one cluster."""
    axis = Axis.until(datetime.fromtimestamp(now.wall, UTC), span)
    history = cache.history(settings.rollups, cluster, axis.start, axis.end)
    if history.problem is not None:
        with st.container(key="plain-history-problem"):
            st.warning(f"History cannot be read: {literal(history.problem)}", icon=":material/warning:")
        return
    if all(frame.empty for frame in (history.latency, history.outcomes, history.bursts, history.redelivered)):
        _nothing(settings, history, span)
        return
    _latency(history, axis)
    columns = st.columns(3, gap="medium")
    with columns[0]:
        sums = frames.outcomes(history.outcomes, axis)
        _chart(
            f"Probe messages {charts.per(axis)}",
            "Every message of a probe and what became of it. Anything below is a message that a client would miss.",
            charts.outcomes(sums, axis),
            "outcomes",
        )
    with columns[1]:
        types = frames.streams(history.bursts)
        shaped = {name: frames.batches(history.bursts, axis, name) for name in types}
        _chart(
            "Ack batch size",
            "How many messages the broker confirms at once: the line is the mean, a cross the largest batch.",
            charts.batches(shaped, axis),
            "batches",
        )
    with columns[2]:
        _chart(
            f"Redelivered messages {charts.per(axis)}",
            "Work done twice: consumers that die, reject, or never acknowledge.",
            charts.redelivered(frames.redelivered(history.redelivered, axis), axis),
            "redelivered",
        )
    deepest = frames.depth(history.depth, axis)
    if deepest:
        _chart(
            "Deepest queues",
            "Ready waits for a consumer; unacked is with a consumer that has not acknowledged.",
            charts.depth(deepest, axis),
            "depth",
        )
    else:
        st.caption("Deepest queues: no queue held a message in this time.")


def _latency(history: History, axis: Axis) -> None:
    types = frames.streams(history.latency)
    shaped = {name: frames.latency(history.latency, axis, name) for name in types}
    low = min((float(item["p50"].min()) for item in shaped.values()), default=0.0)
    high = max((float(item["max"].max()) for item in shaped.values()), default=0.0)
    limits = (low, high) if 0 < low <= high else None
    for column, (name, lines) in zip(st.columns(max(len(shaped), 1), gap="medium"), shaped.items(), strict=False):
        with column:
            _chart(
                f"Confirm latency, {literal(name)}",
                "From publish to the broker's confirm.",
                charts.latency(lines, axis, name, limits),
                f"latency-{name}",
            )


def _chart(title: str, meaning: str, figure: Figure, key: str) -> None:
    with st.container(key=f"plain-chart-{key}"):
        st.markdown(f"**{title}**", help=meaning)
        st.plotly_chart(figure, config=_CONFIG, key=f"chart-{key}", alt=f"{title}. {meaning}")


def _nothing(settings: PageSettings, history: History, span: Range) -> None:
    if len(history.missing) == len(ROLLUPS):
        parts.plain(
            "no-history",
            f"No history of this cluster under {settings.rollups} yet. The pipeline writes it, a minute at a time:",
        )
        st.code(f"ackscope pipeline stream --landing DIR --rollups {settings.rollups}", language=None)
    else:
        st.caption(f"No complete minute of history in the last {span.label}.")
