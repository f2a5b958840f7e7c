"""The page "Now", for the engineer on call: what is wrong, since when, and what to do."""

from pathlib import Path

import streamlit as st

from ackscope.clock import Instant, SystemClock
from dashboard.data.model import ExporterState
from dashboard.frames import minute_frames
from dashboard.settings import PageSettings
from dashboard.ui import cache, layout, probe_boxes, vital_tiles
from dashboard.ui.layout import PageContext, known_clusters, range_heading
from dashboard.views.now import banner, bundle_download, ended_list, headline, incidents, recent_charts

_STYLE = Path(__file__).with_name("now.css")
_OLD_DETAILS = "<style>.st-key-details { opacity: 0.6; }</style>"


def render(context: PageContext) -> None:
    """Draw the page; its fragments refresh on their own."""
    st.html(_STYLE)
    _current(context)
    if context.cluster is not None:
        _bundle(context.settings, context.cluster)
        _recent(context.settings, context.cluster, range_heading("History"))


@st.fragment(run_every="5s")
def _current(context: PageContext) -> None:
    settings, cluster = context.settings, context.cluster
    state = cache.exporter_state(settings.exporter)
    now = SystemClock().now()
    if known_clusters(settings, state) != context.clusters:
        st.rerun()
    # A container of its own: what appears and disappears in it does not move, and so close, an open form below.
    with st.container():
        banner.render(state, cluster, now)
        if state.findings.outage is not None:
            # Not another key for the details: a container with a new key closes an open form in it.
            st.html(_OLD_DETAILS)
    if cluster is None:
        headline.title(headline.headline(None, headline.data_age(None, state.findings, now)))
        if state.findings.outage is None:
            st.caption("No cluster is monitored. Add one to the configuration of the exporter.")
        return
    with st.container():
        headline.render(state, cluster, cache.last_minute(settings.rollups, cluster), now)
    with st.container(key="details"):
        _details(settings, state, cluster, now)


def _details(settings: PageSettings, state: ExporterState, cluster: str, now: Instant) -> None:
    found, totals, load = state.findings.of(cluster), state.snapshot.of(cluster), state.vitals.of(cluster)
    if found is not None:
        if found.findings or layout.get_param("finding"):
            incidents.render(settings, state, found, now)
            layout.let_browser_draw()
        else:
            ended_list.render(found, state.findings, now)
        headline.scope(found, headline.data_age(found, state.findings, now))
    if totals is not None or (load is not None and load.signs):
        st.subheader("Vital metrics", anchor=False)
        vital_tiles.render(totals, load, cache.own_queues(settings.exporter, cluster))
    if state.probes.response is not None:
        st.subheader("Client experience (probes)", anchor=False)
        probe_boxes.render(state.probes.of(cluster), state.probes.exporter_time(now))


@st.fragment
def _bundle(settings: PageSettings, cluster: str) -> None:
    bundle_download.render(settings, cache.exporter_state(settings.exporter), cluster)


@st.fragment(run_every="30s")
def _recent(settings: PageSettings, cluster: str, span: minute_frames.Range) -> None:
    recent_charts.render(settings, cluster, span, SystemClock().now())
