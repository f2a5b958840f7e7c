"""Probe results: one box per probe stream, failing ones first."""

import re
from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from dashboard.data.model import ClusterProbes
from dashboard.format import probe_labels, readable
from dashboard.format.escape import literal, visible
from dashboard.ui import elements

BOXES = 6
"""Streams shown as boxes; the others are in an expander."""

_WORD = re.compile(r"[A-Za-z]+(-[A-Za-z]+)*")
_STATES = {
    ProbeState.CONNECTING: (elements.UNKNOWN, "connecting"),
    ProbeState.BLOCKED: (elements.SEVERITIES[Severity.CRITICAL], "blocked by the broker"),
    ProbeState.UNSUPPORTED: (elements.UNKNOWN, "not supported by this broker"),
    ProbeState.FAILED: (elements.SEVERITIES[Severity.WARNING], "cannot measure"),
}


def render(probes: ClusterProbes | None, now: float) -> None:
    """All streams of one cluster (None without data); `now` is the exporter's clock, seconds since 1970."""
    if probes is None or not (probes.probes or probes.down):
        st.caption("No probe data. Configure `amqp:` for this cluster.")
        return
    if probes.down:
        with st.container(key="plain-probe-process"):
            st.warning(
                f"The probe process is down (restarted {fmt.plural(probes.process.restarts, 'time')}): "
                "the exporter restarts it. The results below are the last ones.",
                icon=":material/warning:",
            )
    by_layer = probe_labels.layers(probes.layers)
    if by_layer is not None:
        elements.plain("probe-layers", by_layer)
    ranked = sorted(probes.probes, key=_rank)
    shown = min(BOXES, sum(not _is_quiet_control(outcome) for outcome in ranked))
    _boxes(ranked[:shown], now)
    if len(ranked) > shown:
        _others(ranked[shown:], shown, probes, now)


def _others(ranked: Sequence[ProbeOutcome], first: int, probes: ClusterProbes, now: float) -> None:
    """The other streams, drawn only while their expander is open, to make refreshes cheaper."""
    box = st.expander(f"{fmt.plural(len(ranked), 'more probe stream')}", key="more-streams", on_change="rerun")
    if box.open:
        with box:
            _boxes(ranked, now, first=first)
            if probes.layers:
                elements.table("probe-layer-table", probe_labels.layer_rows(probes.layers))


def _is_quiet_control(outcome: ProbeOutcome) -> bool:
    return outcome.state is ProbeState.RUNNING and probe_labels.is_control(outcome)


def _rank(outcome: ProbeOutcome) -> tuple[bool, bool, bool, int, str, str]:
    return (
        outcome.state is ProbeState.RUNNING,
        probe_labels.is_control(outcome),
        outcome.doubtful is None,
        probe_labels.position(outcome),
        outcome.stream,
        outcome.node,
    )


def _boxes(outcomes: Iterable[ProbeOutcome], now: float, first: int = 0) -> None:
    row = list(enumerate(outcomes, start=first))
    for start in range(0, len(row), 3):
        for column, (index, outcome) in zip(st.columns(3), row[start : start + 3], strict=False):
            with column, st.container(border=True, key=f"probe-{index}"):
                _box(index, outcome, now)


def _box(index: int, outcome: ProbeOutcome, now: float) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        probe = "" if outcome.stream == outcome.probe else f" {_name(outcome.probe)}"
        st.markdown(f"**{_name(outcome.stream)}**{probe}", width="content")
        if outcome.state in _STATES:
            style, text = _STATES[outcome.state]
            elements.badge(style, text)
        if outcome.doubtful is not None:
            elements.badge(elements.SEVERITIES[Severity.WARNING], "doubtful")
        if now - outcome.at > readable.STALE_AFTER:
            elements.badge(elements.SEVERITIES[Severity.WARNING], f"{readable.duration(now - outcome.at)} old (stale)")
    if outcome.node:
        elements.plain(f"probe-node-{index}", f"on {outcome.node}")
    for words in (outcome.reason, outcome.doubtful, *probe_labels.failures(outcome)):
        if words:
            st.text(visible(words))
    if outcome.confirm.count or not outcome.steps:
        _quantiles(probe_labels.expected_reply(outcome), outcome.confirm)
    if outcome.delivery.count:
        _quantiles("delivery", outcome.delivery)
    if outcome.steps:
        _durations({f"{_name(name)} p50": step.seconds.p50 for name, step in outcome.steps.items()})
    elements.plain(f"probe-detail-{index}", probe_labels.detail(outcome))


def _name(text: str) -> str:
    """Return a plain word unchanged, as ackscope's own names are; escape any other text."""
    return text if _WORD.fullmatch(text) else literal(text)


def _quantiles(what: str, found: Quantiles) -> None:
    _durations({f"{what} p50": found.p50, f"{what} p99": found.p99, f"{what} max": found.max})


def _durations(found: Mapping[str, float | None]) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, value in found.items():
            with st.container(width=90):
                st.metric(name, readable.latency(value))
