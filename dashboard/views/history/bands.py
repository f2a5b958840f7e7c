"""One queue compared with its baseline band of the hour of the week."""

import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from ackscope.measures import measure
from dashboard.charts import history_charts
from dashboard.format.escape import literal, visible
from dashboard.frames import history_frames
from dashboard.frames.minute_frames import Axis, Range
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext, get_param, select, set_param


def render(context: PageContext, cluster: str, span: Range) -> None:
    """Select boxes for queue and measure (`?queue=`, `&vhost=`, `&measure=`), and the chart."""
    known = history_frames.known_queues(cache.answers(context.settings.rollups, cluster).document)
    requested = (get_param("vhost") or "/", get_param("queue"))
    named = (requested[0], requested[1]) if requested[1] else None
    options = known if named is None or named in known else [named, *known]
    if not options:
        st.caption(
            "The reports have no queues yet. To select one, add ?queue=NAME&vhost=VHOST to the address of this page."
        )
        return
    queue, what = _select(options, named)
    axis = Axis.until(SystemClock().now().utc, span, context.zone)
    found = cache.queue_bands(context.settings.rollups, cluster, *queue, *axis.utc)
    if found.problem is not None:
        elements.plain("bands-problem", f"Cannot read the history: {found.problem}")
        return
    lines = history_frames.with_band(found.minutes, found.bands, axis, what)
    reason = history_frames.missing_band_reason(found.bands, what)
    if lines["value"].isna().all():
        st.caption(f"No data of this queue for this measure {span.words(context.zone)}.")
        return
    title = measure(what).words
    with st.container(key="plain-title-band", gap="small"):
        st.markdown(f"**{title[:1].upper()}{title[1:]}** {literal(queue[1])}")
        elements.chart(
            history_charts.band(lines, axis, measure(what)),
            "band",
            f"{title} of one queue, and its baseline band of each hour.",
            axis.end,
        )
    elements.download("band", lambda: lines.rename_axis("at").reset_index(), "Save this data (CSV)")
    if reason is not None:
        elements.plain("band-not-yet", f"No baseline yet: {reason}.")
        return
    outside = int(((lines["value"] > lines["high"]) | (lines["value"] < lines["low"])).sum())
    compared = int((lines["value"].notna() & lines["low"].notna()).sum())
    st.caption(f"Outside the band: {outside} of {fmt.plural(compared, 'point')} with a band.")


def _select(options: list[tuple[str, str]], named: tuple[str, str] | None) -> tuple[tuple[str, str], str]:
    left, right = st.columns([3, 1])
    queue = left.selectbox(
        "Queue",
        options,
        index=0 if named is None else options.index(named),
        format_func=lambda it: f"{visible(it[1])}  (vhost {visible(it[0])})",
        key="band-queue",
        on_change=_store_queue,
    )
    keys = list(history_frames.MEASURES)
    return queue, select(right, "Measure", keys, "measure", "band-measure", words=lambda key: measure(key).words)


def _store_queue() -> None:
    vhost, queue = st.session_state["band-queue"]
    set_param("queue", queue)
    set_param("vhost", vhost)
