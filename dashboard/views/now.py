"""The page "Now": for the person who was woken a minute ago. Is it bad, for whom, since when, what do I do?"""

import streamlit as st

from ackscope.clock import Instant, SystemClock
from dashboard import cache, frames
from dashboard.model import Live
from dashboard.settings import PageSettings
from dashboard.shell import Place, choose_range, clusters
from dashboard.views import banner, findings, handing_over, history, probes, verdict, vitals


def render(place: Place) -> None:
    """Lay out the page; its moving parts refresh by themselves."""
    _present(place)
    if place.cluster is not None:
        _take(place.settings, place.cluster)
        _past(place.settings, place.cluster, choose_range("History"))


@st.fragment(run_every="5s")
def _present(place: Place) -> None:
    settings, cluster = place.settings, place.cluster
    live = cache.live(settings.exporter)
    now = SystemClock().now()
    if clusters(settings, live) != place.names:
        st.rerun()
    banner.render(live, cluster, now)
    if cluster is None:
        verdict.title(verdict.headline(None, verdict.data_of(None, live.findings, now)))
        if live.findings.away is None:
            st.caption("The exporter watches no cluster: add one to its configuration.")
        return
    verdict.render(live, cluster, cache.last_minute(settings.rollups, cluster), now)
    with st.container(key="details" if live.findings.away is None else "old-details"):
        _details(live, cluster, now)


def _details(live: Live, cluster: str, now: Instant) -> None:
    found, totals, load = live.findings.of(cluster), live.vitals.of(cluster), live.signs.of(cluster)
    if found is not None:
        findings.render(found, live.findings.present(now), subjects=load.subjects if load else ())
        verdict.scope(found, verdict.data_of(found, live.findings, now))
    if totals is not None or (load is not None and load.signs):
        st.subheader("Vital signs", anchor=False)
        vitals.render(totals, load)
    if live.probes.answer is not None:
        st.subheader("What a client lives through", anchor=False)
        probes.render(live.probes.of(cluster), live.probes.present(now))


@st.fragment
def _take(settings: PageSettings, cluster: str) -> None:
    handing_over.render(settings, cache.live(settings.exporter), cluster)


@st.fragment(run_every="30s")
def _past(settings: PageSettings, cluster: str, span: frames.Range) -> None:
    history.render(settings, cluster, span, SystemClock().now())
