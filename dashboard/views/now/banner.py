"""Warnings about the monitoring itself: exporter or broker unreachable."""

import streamlit as st

from ackscope.clock import Instant
from dashboard.data.model import ClusterSnapshot, ExporterState, Polled
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import layout


def render(state: ExporterState, cluster: str | None, now: Instant) -> None:
    """Say what is unreachable, since when, why, and what to do. Shows nothing if everything is reachable."""
    outage = state.findings.outage
    if outage is not None:
        old = (
            f"Showing its last response, from {readable.duration(now.since(state.findings.received))} ago."
            if state.findings.received
            else "It has not responded since the dashboard was started, so there is no data."
        )
        with st.container(key="plain-away"):
            st.error(
                f"**Exporter unreachable** since {readable.clock(outage.since.wall, now.wall, layout.current_zone())} "
                f"({readable.duration(now.since(outage.since))} ago). "
                f"{literal(state.url)}: {literal(outage.reason)}.\n\n{old}",
                icon=":material/cloud_off:",
            )
        st.markdown("Start it, or check its log. This page updates when the exporter responds:")
        st.code("ackscope exporter --config FILE", language=None)
        return
    endpoints = (("Probe results", state.probes), ("Totals and nodes", state.snapshot), ("Vital metrics", state.vitals))
    for what, polled in endpoints:
        if polled.outage is not None:
            since = readable.clock(polled.outage.since.wall, now.wall, layout.current_zone())
            with st.container(key=f"plain-away-{what}"):
                st.warning(
                    f"**{what} unavailable** since {since}: {literal(polled.outage.reason)}",
                    icon=":material/warning:",
                )
    if cluster is not None:
        _broker(state.snapshot, cluster, now)


def _broker(polled: Polled[ClusterSnapshot], cluster: str, now: Instant) -> None:
    snapshot = polled.of(cluster)
    if snapshot is None or snapshot.overview.error is None:
        return
    age = polled.age_at(snapshot.ages.get("overview"), now)
    last = "It has not responded yet." if age is None else f"Its last response is {readable.duration(age)} old."
    with st.container(key="plain-broker-away"):
        st.error(
            f"**Broker unreachable from the exporter.** {last} {literal(snapshot.overview.error)}",
            icon=":material/cloud_off:",
        )
