"""The choice of the cluster: all clusters with their state in words, the worst first."""

from collections.abc import Sequence

import streamlit as st

from ackscope.clock import Instant
from ackscope.findings import Severity
from dashboard.data.model import ClusterFindings, ExporterState
from dashboard.format.escape import literal, visible
from dashboard.ui import elements, layout
from dashboard.views.now.headline import Headline, data_age, headline

_WORST = [
    elements.SEVERITIES[Severity.CRITICAL],
    elements.SEVERITIES[Severity.WARNING],
    elements.UNKNOWN,
    elements.SEVERITIES[Severity.INFO],
    elements.GOOD,
]


def worst_first(names: Sequence[str], state: ExporterState, now: Instant) -> dict[str, Headline]:
    """The headline of each cluster, the worst first, clusters in the same state in the given order."""
    response = state.findings.response
    known = {item.cluster: item for item in (response.clusters if response else ())}
    headlines = {name: headline(known.get(name), data_age(known.get(name), state.findings, now)) for name in names}
    return dict(sorted(headlines.items(), key=lambda item: _rank(item[1], known.get(item[0]))))


def _rank(first: Headline, found: ClusterFindings | None) -> tuple[int, int, int]:
    critical, warning = (found.number(it) if found else 0 for it in (Severity.CRITICAL, Severity.WARNING))
    return _WORST.index(first.style), -critical, -warning


def render(names: Sequence[str], state: ExporterState, now: Instant) -> tuple[str | None, str | None]:
    """The cluster of the address (`?cluster=`), or else the worst one, and what is wrong with the address."""
    if not names:
        return None, None
    ranked = worst_first(names, state, now)
    parameter = layout.get_param("cluster")
    known = parameter is None or parameter in ranked
    selected = parameter if parameter in ranked else next(iter(ranked))
    if len(ranked) == 1:
        with st.container(key="plain-cluster", width="content"):
            st.markdown(f"**{literal(selected)}**", width="content")
        return selected, None if known else "Unknown cluster in the address. Showing the only cluster."
    # The state of the box is set, as the address may have changed without it.
    st.session_state["cluster-choice"] = selected
    st.selectbox(
        "Cluster",
        list(ranked),
        format_func=lambda name: f"{visible(name)}: {ranked[name].text}",
        key="cluster-choice",
        on_change=lambda: layout.set_param("cluster", st.session_state["cluster-choice"]),
        label_visibility="collapsed",
        width=290,
    )
    problem = "Unknown cluster in the address. Showing the cluster with the most severe findings."
    return selected, None if known else problem
