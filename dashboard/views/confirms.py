"""The page "Confirms": confirm latency, its layers, and how the broker batches acks."""

from datetime import UTC, datetime, timedelta

import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from dashboard.charts import confirm_charts, minute_charts, theme
from dashboard.data.rollups import MinuteHistory
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.frames import confirm_frames, minute_frames
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements, probe_boxes, range_selection
from dashboard.ui.layout import PageContext, get_param, range_heading, set_param


def render(context: PageContext) -> None:
    """The current latency by layer, then the charts of the time range."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    _layers(context)
    span = range_heading("Confirm latency")
    if span.live:
        _recent(context, span)
    else:
        _selected_range(context, *span.at(_now()))


def _now() -> datetime:
    return SystemClock().now().utc


@st.fragment(run_every="10s")
def _layers(context: PageContext) -> None:
    """Current confirm latency by layer."""
    polled = cache.exporter_state(context.settings.exporter).probes
    mine = polled.of(context.cluster)
    st.subheader("Confirm latency by layer", anchor=False)
    rows = confirm_frames.layer_rows(mine.layers if mine else ())
    if rows["seconds"].notna().any():
        elements.chart(
            confirm_charts.layer_bars(rows),
            "layers",
            "Latency that each layer of the broker adds to a confirm, in milliseconds.",
        )
        st.caption(
            "Medians of the last minute, from probe streams that differ in one layer each: no queue, transient "
            "message, persistent message, replicated message."
        )
    unmeasured = rows[rows["seconds"].isna()]
    if len(unmeasured):
        reasons = [
            {"Layer": f"{layer}{f' on {node}' if node else ''}", "Why it has no value": because}
            for node, layer, because in unmeasured[["node", "layer", "because"]].to_numpy().tolist()
        ]
        with st.expander(f"{fmt.plural(len(reasons), 'layer')} without a value"):
            elements.table("layers-unmeasured", reasons)
    if rows.empty:
        st.caption("No probe data. Configure `amqp:` for this cluster.")
    with st.expander("Current results of each probe stream"):
        now = SystemClock().now()
        probe_boxes.render(mine, polled.exporter_time(now))


@st.fragment(run_every="30s")
def _recent(context: PageContext, span: minute_frames.Range) -> None:
    axis = Axis.until(_now(), span, context.zone)
    history = _read(context, axis)
    if history is None:
        return
    if history.latency.empty and history.bursts.empty:
        elements.no_history(context.settings, span, has_history=history.exists)
        return
    _charts(context, history, axis)


@st.fragment
def _selected_range(context: PageContext, start: datetime, end: datetime) -> None:
    axis = confirm_frames.axis_for(start, end, context.zone)
    history = _read(context, axis)
    if history is None:
        return
    range_selection.missing_history((history.latency, history.bursts, history.outcomes), axis, context.zone)
    if not (history.latency.empty and history.bursts.empty):
        _charts(context, history, axis)


def _read(context: PageContext, axis: Axis) -> MinuteHistory | None:
    """The history of the axis; None, and the reason on the page, if it cannot be read."""
    history = cache.minute_history(context.settings.rollups, context.cluster or "", *axis.utc)
    if history.problem is not None:
        elements.plain("history-problem", f"Cannot read the history: {history.problem}")
        return None
    return history


def _charts(context: PageContext, history: MinuteHistory, axis: Axis) -> None:
    stream = _select_stream(history)
    if stream is not None:
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _heat(history, axis, stream)
        with right:
            _layers_over_time(history, axis, stream)
    left, right = st.columns(2, gap="medium")
    with left:
        types = minute_frames.streams(history.bursts)
        shaped = {name: found for name in types if len(found := confirm_frames.bursts(history.bursts, name))}
        selection = elements.titled_chart(
            "Ack bursts: size and interval",
            "One mark per minute. Top right: the broker batches confirms and sends many at once, which it does when it "
            "waits for the disk. Select a mark to show only its minutes.",
            confirm_charts.burst_points(shaped, context.zone),
            "burst-points",
            axis.end,
            select="points",
        )
        if selection.points:
            minutes = [datetime.fromisoformat(point["customdata"][1]).replace(tzinfo=UTC) for point in selection.points]
            range_selection.select_range(*confirm_frames.widen(min(minutes), max(minutes) + timedelta(minutes=1)))
    with right:
        sums = minute_frames.outcomes(history.outcomes, axis)
        elements.titled_chart(
            f"Probe messages {theme.per_step(axis)}",
            "Outcomes of all probe messages. Messages in the lower part would be missing for a client.",
            minute_charts.outcomes(sums, axis),
            "confirm-outcomes",
            axis.end,
        )
    elements.download("outcomes", lambda: sums.rename_axis("at").reset_index(), "Save outcomes (CSV)")


def _select_stream(history: MinuteHistory) -> str | None:
    mine = history.latency[(history.latency["probe"] == "confirm") & (history.latency["measure"] == "confirm")]
    names = sorted(set(mine["stream"]), key=lambda name: (name not in minute_charts.QUEUE_TYPES, name))
    if not names:
        st.caption("No confirm was measured in this range.")
        return None
    current = get_param("stream")
    selected: str = (
        st.segmented_control(
            "Stream",
            names,
            default=current if current in names else names[0],
            key="stream-choice",
            on_change=lambda: set_param("stream", st.session_state["stream-choice"]),
            label_visibility="collapsed",
        )
        or names[0]
    )
    return selected


def _layers_over_time(history: MinuteHistory, axis: Axis, stream: str) -> None:
    layers = confirm_frames.layer_history(history.latency, axis, stream)
    if layers.notna().any().any():
        elements.titled_chart(
            "Where the time goes",
            "Median of each step, split by layer: the difference of two probe streams that differ in this layer. A "
            "step in which a layer has too few messages is left out.",
            confirm_charts.layer_history(layers, axis),
            "layers-over-time",
            axis.end,
        )
        elements.download("layers", lambda: layers.rename_axis("at").reset_index(), "Save this data (CSV)")
    else:
        st.caption(
            "Where the time goes is unknown: it needs the streams unroutable, transient, and those of the queue type, "
            "with 30 confirms in a step."
        )


def _heat(history: MinuteHistory, axis: Axis, stream: str) -> None:
    grid = confirm_frames.heat(history.latency, axis, stream)
    lines = minute_frames.latency(history.latency, axis, stream)
    if grid.empty:
        st.caption("No confirm of this stream was measured in this range.")
        return
    selection = elements.titled_chart(
        f"Confirm latency of {literal(stream)}",
        "From publish to the broker's confirm. The colour of a cell is the number of confirms with this latency; lines "
        "are p50, p99 and max. Grey: no data. Draw a box to show only its time range.",
        confirm_charts.heatmap(grid, lines, axis),
        "heat",
        axis.end,
        select="box",
    )
    found = confirm_frames.selected_range([edge for box in selection.boxes for edge in box["x"]], axis)
    if found is not None:
        range_selection.select_range(*found)
    last = lines.dropna().tail(1)
    if len(last):
        row = last.iloc[0]
        st.caption(
            f"{last.index[0]:%H:%M} {axis.zone}: p50 {readable.latency(row['p50'])}, "
            f"p99 {readable.latency(row['p99'])}, "
            f"max {readable.latency(row['max'])}, {readable.count(row['count'])} confirms. Quantiles are accurate "
            "within a factor of 1.36, the maximum is exact. Draw a box in the chart to show only its time range."
        )
    elements.download("latency", lambda: confirm_frames.latency_rows(lines), "Save this data (CSV)")
