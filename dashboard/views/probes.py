"""What a client lives through: one box a probe stream, the ones that cannot measure first."""

from collections.abc import Iterable

import streamlit as st

from ackscope.findings import Severity
from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from dashboard import wording
from dashboard.escape import literal, visible
from dashboard.model import ClusterProbes
from dashboard.views import parts

BOXES = 6
"""So many streams are shown as boxes; the others wait behind a click."""

_STATES = {
    ProbeState.CONNECTING: (parts.UNKNOWN, "connecting"),
    ProbeState.BLOCKED: (parts.SEVERITIES[Severity.CRITICAL], "blocked by the broker"),
    ProbeState.FAILED: (parts.SEVERITIES[Severity.WARNING], "cannot measure"),
}


def render(probes: ClusterProbes | None, now: float) -> None:
    """All streams of one cluster, or None where the exporter told nothing; `now` is its wall clock."""
    if probes is None or not (probes.probes or probes.down):
        st.caption("No probe reports on this cluster: give the exporter an `amqp` address for it.")
        return
    if probes.down:
        with st.container(key="plain-probe-process"):
            st.warning(
                f"The probe process is down (restarted {wording.plural(probes.process.restarts, 'time')}): "
                "the exporter starts it again; what follows is the last it measured.",
                icon=":material/warning:",
            )
    ranked = sorted(probes.probes, key=_rank)
    _boxes(ranked[:BOXES], now)
    if len(ranked) > BOXES:
        with st.expander(f"{wording.plural(len(ranked) - BOXES, 'more probe stream')}"):
            _boxes(ranked[BOXES:], now, first=BOXES)


def _rank(outcome: ProbeOutcome) -> tuple[bool, bool, str, str, str]:
    return (
        outcome.state is ProbeState.RUNNING,
        outcome.doubtful is None,
        outcome.probe,
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
        st.markdown(f"**{_name(outcome.stream)}** {_name(outcome.probe)}", width="content")
        if outcome.state in _STATES:
            look, text = _STATES[outcome.state]
            parts.badge(look, text)
        if outcome.doubtful is not None:
            parts.badge(parts.SEVERITIES[Severity.WARNING], "doubtful")
        if now - outcome.at > wording.STALE_AFTER:
            parts.badge(parts.SEVERITIES[Severity.WARNING], f"{wording.span(now - outcome.at)} old (stale)")
    if outcome.node:
        parts.plain(f"probe-node-{index}", f"on {outcome.node}")
    for words in (outcome.reason, outcome.doubtful):
        if words:
            st.text(visible(words))
    _quantiles("confirm", outcome.confirm)
    if outcome.delivery.count:
        _quantiles("delivery", outcome.delivery)
    parts.plain(f"probe-detail-{index}", _detail(outcome))


def _name(text: str) -> str:
    """One of our own words as Markdown; anything else literally."""
    return text if text.isascii() and text.isalpha() else literal(text)


def _quantiles(what: str, found: Quantiles) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, value in (("p50", found.p50), ("p99", found.p99), ("max", found.max)):
            with st.container(width=90):
                st.metric(f"{what} {name}", wording.latency(value))


def _detail(outcome: ProbeOutcome) -> str:
    total = sum(outcome.outcomes.values())
    told = [f"{name} {number:,}" for name, number in outcome.outcomes.items() if number and name != "acked"]
    words = [f"acked {outcome.outcomes.get('acked', 0):,} of {total:,} settled", *told]
    words += [
        f"{label} {number:,}"
        for label, number in (
            ("redelivered", outcome.redeliveries),
            ("duplicates", outcome.duplicates),
            ("out of order", outcome.out_of_order),
            ("missing", outcome.missing),
        )
        if number
    ]
    if outcome.burst_messages.count:
        p50, most = outcome.burst_messages.p50, outcome.burst_messages.max
        words.append(f"ack batches: median {wording.count(p50)}, at most {wording.count(most)} messages")
    words.append(f"own error: send delay p99 {wording.latency(outcome.send_delay.p99)}")
    return " · ".join(words)
