"""The page "Confirms": what a confirm costs on this broker, where the time goes, and how acks are batched."""

from datetime import UTC, datetime, timedelta

import streamlit as st

from ackscope.clock import SystemClock
from dashboard.charts import confirm_charts, minute_charts, theme
from dashboard.data.rollups import MinuteHistory
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.frames import confirm_frames, minute_frames
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements, probe_boxes, range_selection
from dashboard.ui.layout import PageContext, choose_range, keep, wanted
from dashboard.views.now.recent_charts import chart, empty


def render(place: PageContext) -> None:
    """The present in words, then the charts of the range."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    _layers(place)
    narrowed = range_selection.asked(_now())
    if narrowed is not None:
        range_selection.heading("Confirm latency", *narrowed, place.zone)
        _stretch(place, *narrowed)
    else:
        _past(place, choose_range("Confirm latency"))


def _now() -> datetime:
    return SystemClock().now().utc


@st.fragment(run_every="10s")
def _layers(place: PageContext) -> None:
    """Where the time of a confirm goes at present."""
    feed = cache.live(place.settings.exporter).probes
    mine = feed.of(place.cluster)
    st.subheader("Where the time of a confirm goes", anchor=False)
    rows = confirm_frames.layer_rows(mine.layers if mine else ())
    if rows["seconds"].notna().any():
        elements.chart(
            confirm_charts.layer_bars(rows),
            "layers",
            "What each layer of the broker adds to a confirm, in milliseconds.",
        )
        st.caption(
            "Medians of the last minute, told apart by streams that differ in one layer each: no queue, a transient "
            "message, a persistent one, a replicated one."
        )
    silent = rows[rows["seconds"].isna()]
    for index, (node, layer, because) in enumerate(silent[["node", "layer", "because"]].to_numpy().tolist()):
        elements.plain(f"layer-{index}", f"{layer}{f' on {node}' if node else ''}: {because}")
    if rows.empty:
        st.caption("No probe tells: give the exporter an `amqp` address for this cluster.")
    with st.expander("What each probe stream lives through now"):
        now = SystemClock().now()
        probe_boxes.render(mine, feed.present(now))


@st.fragment(run_every="30s")
def _past(place: PageContext, span: minute_frames.Range) -> None:
    axis = Axis.until(_now(), span, place.zone)
    history = _read(place, axis)
    if history is None:
        return
    if history.latency.empty and history.bursts.empty:
        empty(place.settings, span, begun=history.begun)
        return
    _charts(place, history, axis)


@st.fragment
def _stretch(place: PageContext, start: datetime, end: datetime) -> None:
    axis = confirm_frames.axis_of(start, end, place.zone)
    history = _read(place, axis)
    if history is None:
        return
    range_selection.missing((history.latency, history.bursts, history.outcomes), axis, place.zone)
    if not (history.latency.empty and history.bursts.empty):
        _charts(place, history, axis)


def _read(place: PageContext, axis: Axis) -> MinuteHistory | None:
    """What history holds of the axis; None, and why is said, where it cannot be read."""
    history = cache.history(place.settings.rollups, place.cluster or "", *axis.utc)
    if history.problem is not None:
        elements.plain("history-problem", f"History cannot be read: {history.problem}")
        return None
    return history


def _charts(place: PageContext, history: MinuteHistory, axis: Axis) -> None:
    stream = _choose_stream(history)
    if stream is not None:
        _heat(history, axis, stream)
    left, right = st.columns(2, gap="medium")
    with left:
        types = minute_frames.streams(history.bursts)
        shaped = {name: found for name in types if len(found := confirm_frames.bursts(history.bursts, name))}
        marked = chart(
            "Ack bursts: size against interval",
            "A mark a minute. Far right and high: the broker holds confirms back and sends many at once, as it does "
            "when it waits for the disk. Select a mark to see its minutes alone.",
            confirm_charts.burst_points(shaped, place.zone),
            "burst-points",
            axis.end,
            select="points",
        )
        if marked.points:
            minutes = [datetime.fromisoformat(point["customdata"][1]).replace(tzinfo=UTC) for point in marked.points]
            range_selection.narrow(*confirm_frames.widened(min(minutes), max(minutes) + timedelta(minutes=1)))
    with right:
        sums = minute_frames.outcomes(history.outcomes, axis)
        chart(
            f"Probe messages {theme.per(axis)}",
            "Every message of a probe and what became of it. Anything below is a message that a client would miss.",
            minute_charts.outcomes(sums, axis),
            "confirm-outcomes",
            axis.end,
        )
    elements.save("outcomes", lambda: sums.rename_axis("at").reset_index(), "Save outcomes (CSV)")


def _choose_stream(history: MinuteHistory) -> str | None:
    mine = history.latency[(history.latency["probe"] == "confirm") & (history.latency["measure"] == "confirm")]
    names = sorted(set(mine["stream"]), key=lambda name: (name not in minute_charts.QUEUE_TYPES, name))
    if not names:
        st.caption("No confirm was measured in this time.")
        return None
    asked = wanted("stream")
    chosen: str = (
        st.segmented_control(
            "Stream",
            names,
            default=asked if asked in names else names[0],
            key="stream-choice",
            on_change=lambda: keep("stream", st.session_state["stream-choice"]),
            label_visibility="collapsed",
        )
        or names[0]
    )
    return chosen


def _heat(history: MinuteHistory, axis: Axis, stream: str) -> None:
    grid = confirm_frames.heat(history.latency, axis, stream)
    lines = minute_frames.latency(history.latency, axis, stream)
    if grid.empty:
        st.caption("No confirm of this stream was measured in this time.")
        return
    marked = chart(
        f"Confirm latency of {literal(stream)}",
        "From publish to the broker's confirm. Each cell tells how many confirms took so long; lines are p50, p99 and "
        "the slowest. Grey: nobody looked. Draw a box to see its time alone.",
        confirm_charts.heatmap(grid, lines, axis),
        "heat",
        axis.end,
        select="box",
    )
    found = confirm_frames.stretch([edge for box in marked.boxes for edge in box["x"]], axis)
    if found is not None:
        range_selection.narrow(*found)
    last = lines.dropna().tail(1)
    if len(last):
        row = last.iloc[0]
        st.caption(
            f"{last.index[0]:%H:%M} {axis.zone}: p50 {readable.latency(row['p50'])}, "
            f"p99 {readable.latency(row['p99'])}, "
            f"slowest {readable.latency(row['max'])}, {readable.count(row['count'])} confirms. Quantiles are within a "
            "factor of 1.36, the slowest is exact. Draw a box in the chart to see its time alone."
        )
    elements.save("latency", lambda: confirm_frames.latency_rows(lines), "Save these figures (CSV)")
