"""The page "Now": for the person who was woken a minute ago. Is it bad, for whom, since when, what do I do?"""

from pathlib import Path

import streamlit as st

from ackscope.clock import Instant, SystemClock
from ackscope.findings import Severity
from dashboard import cache, frames
from dashboard.model import Live
from dashboard.settings import PageSettings
from dashboard.views import banner, findings, history, probes, verdict, vitals

_NO_CLUSTER = "?"


def render() -> None:
    """Lay out the page; its moving parts refresh by themselves."""
    st.set_page_config(page_title="ackscope: now", page_icon="🐇", layout="wide")
    st.html(Path(__file__).with_name("style.css"))
    settings = PageSettings.from_environ()
    names = _clusters(settings, cache.live(settings.exporter))
    cluster = _choose_cluster(names, cache.live(settings.exporter))
    _present(settings, cluster, names)
    if cluster is not None:
        _past(settings, cluster, _choose_range())


def _clusters(settings: PageSettings, live: Live) -> tuple[str, ...]:
    """What the exporter knows; while it was never reached, what has history."""
    return live.clusters or cache.rollup_clusters(settings.rollups)


def _choose_cluster(names: tuple[str, ...], live: Live) -> str | None:
    """The cluster of the address (`?cluster=`), else the one that is worst off."""
    if not names:
        return None
    wanted = st.query_params.get("cluster")
    start = wanted if wanted in names else _worst(names, live)
    if len(names) == 1:
        if wanted is not None and wanted != start:
            st.warning("The cluster in this page's address is not known; the only one is shown.")
        return start
    chosen = st.selectbox(
        "Cluster",
        names,
        index=names.index(start),
        key="cluster-choice",
        on_change=_keep_cluster,
        label_visibility="collapsed",
        width=320,
    )
    if wanted is not None and wanted not in names:
        st.warning("The cluster in this page's address is not known; the one that is worst off is shown.")
    return chosen


def _keep_cluster() -> None:
    st.query_params["cluster"] = st.session_state["cluster-choice"]


def _worst(names: tuple[str, ...], live: Live) -> str:
    order = list(Severity)
    ranks = {
        item.cluster: min((order.index(finding.severity) for finding in item.findings), default=len(order))
        for item in (live.findings.answer.clusters if live.findings.answer else ())
    }
    return min(names, key=lambda name: ranks.get(name, len(order)))


def _choose_range() -> frames.Range:
    """The range of the address (`?range=`), an hour by default."""
    keys = list(frames.RANGES)
    wanted = st.query_params.get("range")
    title, choice = st.columns([4, 1], vertical_alignment="bottom")
    title.subheader("History", anchor=False)
    chosen = choice.selectbox(
        "Range",
        keys,
        index=keys.index(wanted) if wanted in frames.RANGES else keys.index("1h"),
        format_func=lambda key: f"Last {frames.RANGES[key].label}",
        key="range-choice",
        on_change=_keep_range,
        label_visibility="collapsed",
    )
    return frames.RANGES[chosen]


def _keep_range() -> None:
    st.query_params["range"] = st.session_state["range-choice"]


@st.fragment(run_every="5s")
def _present(settings: PageSettings, cluster: str | None, names: tuple[str, ...]) -> None:
    live = cache.live(settings.exporter)
    now = SystemClock().now()
    if _clusters(settings, live) != names:
        st.rerun()
    banner.render(live, cluster, now)
    if cluster is None:
        verdict.title(verdict.headline(None, None, away=live.findings.away is not None))
        if live.findings.away is None:
            st.caption("The exporter watches no cluster: add one to its configuration.")
        return
    verdict.render(live, cluster, cache.last_minute(settings.rollups, cluster), now)
    with st.container(key="details" if live.findings.away is None else "old-details"):
        _details(live, cluster, now)


def _details(live: Live, cluster: str, now: Instant) -> None:
    answer = live.findings.answer
    found = next((item for item in (answer.clusters if answer else ()) if item.cluster == cluster), None)
    if found is not None:
        findings.render(found, live.findings.present(now))
        verdict.scope(found)
    signs = next(
        (item for item in (live.vitals.answer.clusters if live.vitals.answer else ()) if item.cluster == cluster), None
    )
    if signs is not None:
        st.subheader("Vital signs", anchor=False)
        vitals.render(signs)
    if live.probes.answer is not None:
        st.subheader("What a client lives through", anchor=False)
        mine = next((item for item in live.probes.answer.clusters if item.cluster == cluster), None)
        probes.render(mine, live.probes.present(now))


@st.fragment(run_every="30s")
def _past(settings: PageSettings, cluster: str, span: frames.Range) -> None:
    history.render(settings, cluster, span, SystemClock().now())
