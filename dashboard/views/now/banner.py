"""What is wrong with the watching itself: the exporter is away, or the broker no longer answers it."""

import streamlit as st

from ackscope.clock import Instant
from dashboard.data.model import ClusterSnapshot, ExporterState, Polled
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import layout


def render(live: ExporterState, cluster: str | None, now: Instant) -> None:
    """Say what is missing, since when, why, and what to do; nothing where all is well."""
    away = live.findings.away
    if away is not None:
        old = (
            f"What follows is what it said {readable.span(now.since(live.findings.at))} ago."
            if live.findings.at
            else "It has not answered since this page was started: nothing is known."
        )
        with st.container(key="plain-away"):
            st.error(
                f"**The exporter is away** since {readable.clock(away.since.wall, now.wall, layout.zone())} "
                f"({readable.span(now.since(away.since))} ago). {literal(live.url)}: {literal(away.reason)}.\n\n{old}",
                icon=":material/cloud_off:",
            )
        st.markdown("Start it, or look at why it stopped; this page goes on by itself once it answers:")
        st.code("ackscope exporter --config FILE", language=None)
        return
    feeds = (("Probe results", live.probes), ("Totals and nodes", live.snapshot), ("What goes through", live.vitals))
    for what, feed in feeds:
        if feed.away is not None:
            with st.container(key=f"plain-away-{what}"):
                st.warning(
                    f"**{what} cannot be read** since {readable.clock(feed.away.since.wall, now.wall, layout.zone())}: "
                    f"{literal(feed.away.reason)}",
                    icon=":material/warning:",
                )
    if cluster is not None:
        _broker(live.snapshot, cluster, now)


def _broker(feed: Polled[ClusterSnapshot], cluster: str, now: Instant) -> None:
    vitals = feed.of(cluster)
    if vitals is None or vitals.overview.error is None:
        return
    age = feed.aged(vitals.ages.get("overview"), now)
    last = "It has not answered yet." if age is None else f"Its last answer is {readable.span(age)} old."
    with st.container(key="plain-broker-away"):
        st.error(
            f"**The broker does not answer the exporter.** {last} {literal(vitals.overview.error)}",
            icon=":material/cloud_off:",
        )
