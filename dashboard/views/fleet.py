"""The page "Fleet": all clusters, the worst first, one row each; a click opens the cluster."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.clock import Instant, SystemClock
from ackscope.findings import Severity
from ackscope.records import ProbeState
from ackscope.reports import FindingReport
from dashboard.charts import sparkline
from dashboard.data.model import ClusterFindings, ClusterProbes, ClusterVitals, ExporterState
from dashboard.format import probe_labels, readable
from dashboard.format.escape import visible
from dashboard.frame import cluster_choice
from dashboard.ui import cache, elements, layout
from dashboard.ui.layout import PageContext
from dashboard.views.now import banner
from dashboard.views.now.headline import Headline, data_age

# Pixels: thirty rows fit on a screen.
_ROW_HEIGHT = 23
_UNKNOWN = "background-color: #8a94a0; color: #14171b"
# Style of the state's cell, readable in both themes; what is well stays quiet.
_STYLES = {
    elements.SEVERITIES[Severity.CRITICAL].word: "background-color: #c62828; color: #ffffff",
    elements.SEVERITIES[Severity.WARNING].word: "background-color: #e08a00; color: #14171b",
    elements.SEVERITIES[Severity.INFO].word: "background-color: rgba(47, 129, 199, 0.2)",
    elements.GOOD.word: "background-color: rgba(46, 125, 50, 0.2)",
}
_NUMBERS = ("publish", "deliver", "ready")
_LINE_HELP, _GAP_HELP = "messages per second", " in the last 30 min, from zero; blank is a gap"
_FORMAT = {
    "state": st.column_config.TextColumn("State", width=84),
    "cluster": st.column_config.TextColumn("Cluster", width=164),
    "findings": st.column_config.TextColumn("Findings", width=205),
    "worst": st.column_config.TextColumn("Worst finding", width=270),
    "since": st.column_config.TextColumn("Since", help="how long ago the worst finding started", width=70),
    "published": st.column_config.ImageColumn("Published", help=f"{_LINE_HELP} published{_GAP_HELP}", width=84),
    "publish": st.column_config.NumberColumn("In /s", help=f"{_LINE_HELP} published", format="localized", width=62),
    "delivered": st.column_config.ImageColumn("Delivered", help=f"{_LINE_HELP} delivered{_GAP_HELP}", width=84),
    "deliver": st.column_config.NumberColumn("Out /s", help=f"{_LINE_HELP} delivered", format="localized", width=62),
    "ready": st.column_config.NumberColumn("Ready", help="ready messages of all queues", format="localized", width=74),
    "confirm": st.column_config.NumberColumn(
        "Confirm p99", help="the slowest p99 of the confirm probes", format="%.1f ms", width=94
    ),
    "age": st.column_config.TextColumn("Data age", help="age of the broker's data", width=92),
}


def render(context: PageContext) -> None:
    """A row per cluster."""
    _table(context)


@st.fragment(run_every="10s")
def _table(context: PageContext) -> None:
    state, now = cache.exporter_state(context.settings.exporter), SystemClock().now()
    if state.findings.outage is not None:
        banner.render(state, None, now)
    ranked = cluster_choice.worst_first(layout.known_clusters(context.settings, state), state, now)
    if not ranked:
        st.caption("No cluster is monitored. Add one to the configuration of the exporter.")
        return
    rows = pd.DataFrame([_row(name, first, state, now) for name, first in ranked.items()])
    shown = rows.assign(**{name: rows[name].map(visible) for name in ("cluster", "worst")})
    selection = st.dataframe(
        shown.style.map(lambda word: _STYLES.get(word, _UNKNOWN), subset=["state"]),
        column_order=list(_FORMAT),
        column_config=_FORMAT,
        hide_index=True,
        height=_ROW_HEIGHT * len(shown) + 40,
        row_height=_ROW_HEIGHT,
        placeholder=fmt.ABSENT,
        on_select="rerun",
        selection_mode="single-cell",
        key="fleet",
    )
    cells = selection["selection"]["cells"]
    if cells:
        layout.open_page("", cluster=list(ranked)[cells[0][0]])
    st.caption(f"{fmt.plural(len(rows), 'cluster')}, the worst first. Select a row to open its cluster.")
    elements.download("fleet", lambda: rows.drop(columns=["published", "delivered"]))


def _row(name: str, first: Headline, state: ExporterState, now: Instant) -> Mapping[str, Any]:
    found = state.findings.of(name)
    worst = _worst(found)
    began = readable.parse_iso(worst.since) if worst else None
    data = data_age(found, state.findings, now)
    age = "none" if data.age is None else f"{readable.duration(data.age)}{' (stale)' if data.stale else ''}"
    return {
        "state": first.style.word,
        "cluster": name,
        "findings": first.text if worst else "",
        "worst": f"{worst.rule}: {worst.subject}" if worst else first.text,
        "since": None if began is None else readable.duration(state.findings.exporter_time(now) - began),
        **_traffic(state.vitals.of(name)),
        "confirm": _confirm(state.probes.of(name)),
        "age": age,
    }


def _worst(found: ClusterFindings | None) -> FindingReport | None:
    order = list(Severity)
    return min(found.findings, key=lambda it: order.index(it.severity), default=None) if found else None


def _traffic(vitals: ClusterVitals | None) -> dict[str, Any]:
    signs = {sign.name: sign for sign in vitals.signs} if vitals else {}
    lines = {
        column: sparkline.cell(signs[name].line if name in signs else (), sparkline.CLUSTER_SECONDS, sparkline.LOW_ROWS)
        for column, name in (("published", "publish"), ("delivered", "deliver"))
    }
    return lines | {name: _rounded(signs[name].value) if name in signs else None for name in _NUMBERS}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 0 if value >= 10 else 1)


def _confirm(probes: ClusterProbes | None) -> float | None:
    """The slowest p99 of the confirm probes that stand for applications, in milliseconds."""
    measured = [
        outcome.confirm.p99 * 1000
        for outcome in (probes.probes if probes else ())
        if outcome.probe == "confirm"
        and outcome.state is ProbeState.RUNNING
        and outcome.confirm.p99 is not None
        and not probe_labels.is_control(outcome)
    ]
    return max(measured, default=None)
