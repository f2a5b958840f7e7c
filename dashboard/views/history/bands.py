"""One queue over what is usual for it at that hour of the week."""

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.measures import measure
from dashboard.charts import history_charts
from dashboard.format import readable
from dashboard.format.escape import literal, visible
from dashboard.frames import history_frames
from dashboard.frames.minute_frames import Axis, Range
from dashboard.ui import elements, history_cache
from dashboard.ui.layout import PageContext, choose, keep, wanted


def render(place: PageContext, cluster: str, span: Range) -> None:
    """The queue and the measure of the address (`?queue=`, `&vhost=`, `&measure=`), and its chart."""
    known = history_frames.known_queues(history_cache.answers(place.settings.rollups, cluster).document)
    asked = (wanted("vhost") or "/", wanted("queue"))
    named = (asked[0], asked[1]) if asked[1] else None
    options = known if named is None or named in known else [named, *known]
    if not options:
        st.caption("No queue is known to the answers yet; add ?queue=NAME&vhost=VHOST to this page's address for one.")
        return
    queue, what = _chosen(options, named)
    axis = Axis.until(SystemClock().now().utc, span, place.zone)
    found = history_cache.banded(place.settings.rollups, cluster, *queue, *axis.utc)
    if found.problem is not None:
        elements.plain("bands-problem", f"The history cannot be read: {found.problem}")
        return
    lines = history_frames.banded(found.minutes, found.bands, axis, what)
    reason = history_frames.not_yet(found.bands, what)
    if lines["value"].isna().all():
        st.caption(f"No minute of this queue in the last {span.label} tells this.")
        return
    title = measure(what).words
    with st.container(key="plain-title-band", gap="small"):
        st.markdown(f"**{title[:1].upper()}{title[1:]}** {literal(queue[1])}")
        elements.chart(
            history_charts.band(lines, axis, measure(what)),
            "band",
            f"{title} of one queue, and the band that is usual at each hour.",
            axis.end,
        )
    elements.save("band", lambda: lines.rename_axis("at").reset_index(), "Save these figures (CSV)")
    if reason is not None:
        elements.plain("band-not-yet", f"What is usual is not known yet: {reason}.")
        return
    outside = int(((lines["value"] > lines["high"]) | (lines["value"] < lines["low"])).sum())
    banded = int((lines["value"].notna() & lines["low"].notna()).sum())
    st.caption(f"Outside of the band: {outside} of {readable.plural(banded, 'point')} that have one.")


def _chosen(options: list[tuple[str, str]], named: tuple[str, str] | None) -> tuple[tuple[str, str], str]:
    left, right = st.columns([3, 1])
    queue = left.selectbox(
        "Queue",
        options,
        index=0 if named is None else options.index(named),
        format_func=lambda it: f"{visible(it[1])}  (vhost {visible(it[0])})",
        key="band-queue",
        on_change=_keep_queue,
    )
    keys = list(history_frames.MEASURES)
    return queue, choose(right, "Measure", keys, "measure", "band-measure", words=lambda key: measure(key).words)


def _keep_queue() -> None:
    vhost, queue = st.session_state["band-queue"]
    keep("queue", queue)
    keep("vhost", vhost)
