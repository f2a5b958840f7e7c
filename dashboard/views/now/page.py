"""The page "Now": for the person who was woken a minute ago. Is it bad, for whom, since when, what do I do?"""

import streamlit as st

from ackscope.clock import Instant, SystemClock
from dashboard.data.model import ExporterState
from dashboard.frames import minute_frames
from dashboard.settings import PageSettings
from dashboard.ui import cache, finding_cards, probe_boxes, vital_tiles
from dashboard.ui.layout import PageContext, choose_range, clusters
from dashboard.views.now import banner, bundle_download, headline, recent_charts


def render(place: PageContext) -> None:
    """Lay out the page; its moving parts refresh by themselves."""
    _present(place)
    if place.cluster is not None:
        _take(place.settings, place.cluster)
        _past(place.settings, place.cluster, choose_range("History"))


@st.fragment(run_every="5s")
def _present(place: PageContext) -> None:
    settings, cluster = place.settings, place.cluster
    live = cache.live(settings.exporter)
    now = SystemClock().now()
    if clusters(settings, live) != place.names:
        st.rerun()
    banner.render(live, cluster, now)
    if cluster is None:
        headline.title(headline.headline(None, headline.data_of(None, live.findings, now)))
        if live.findings.away is None:
            st.caption("The exporter watches no cluster: add one to its configuration.")
        return
    headline.render(live, cluster, cache.last_minute(settings.rollups, cluster), now)
    with st.container(key="details" if live.findings.away is None else "old-details"):
        _details(live, cluster, now)


def _details(live: ExporterState, cluster: str, now: Instant) -> None:
    found, totals, load = live.findings.of(cluster), live.snapshot.of(cluster), live.vitals.of(cluster)
    if found is not None:
        finding_cards.render(found, live.findings.present(now), subjects=load.subjects if load else ())
        headline.scope(found, headline.data_of(found, live.findings, now))
    if totals is not None or (load is not None and load.signs):
        st.subheader("Vital signs", anchor=False)
        vital_tiles.render(totals, load)
    if live.probes.answer is not None:
        st.subheader("What a client lives through", anchor=False)
        probe_boxes.render(live.probes.of(cluster), live.probes.present(now))


@st.fragment
def _take(settings: PageSettings, cluster: str) -> None:
    bundle_download.render(settings, cache.live(settings.exporter), cluster)


@st.fragment(run_every="30s")
def _past(settings: PageSettings, cluster: str, span: minute_frames.Range) -> None:
    recent_charts.render(settings, cluster, span, SystemClock().now())
