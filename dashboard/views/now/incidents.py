"""The list of all findings, and next to it the chosen one in full."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from ackscope.clock import Instant
from ackscope.findings import Subject
from ackscope.reports import FindingReport, flat_reports
from dashboard.data.model import ClusterFindings, ExporterState
from dashboard.format import readable, vital_metrics
from dashboard.frames import finding_rows
from dashboard.settings import PageSettings
from dashboard.ui import cache, elements, finding_cards, layout
from dashboard.ui.finding_cards import CardContext
from dashboard.views.now import ended_list, finding_list, triage_controls

_LAST = "last-finding"
_CHART_KINDS = ("queue", "node", "cluster")


@dataclass(frozen=True, slots=True)
class _Shown:
    """The finding that is shown in full.

    Attributes:
        seen_at: when it was present last, by the exporter's clock, seconds since 1970.
    """

    cluster: str
    address: str
    finding: FindingReport
    seen_at: float


def render(settings: PageSettings, state: ExporterState, found: ClusterFindings, at: Instant) -> None:
    """The list with what ended recently, and the details.

    Args:
        settings: settings of the pages.
        state: state of the exporter.
        found: findings of the cluster.
        at: this machine's clock.
    """
    now = state.findings.exporter_time(at)
    by_address = finding_rows.addresses(found.findings)
    shown = _shown(found, by_address, now)
    vitals = state.vitals.of(found.cluster)
    listed, details = st.columns([5, 6], gap="medium")
    with listed, st.container(key="finding-list"):
        address = shown.address if shown else None
        finding_list.render(found.findings, by_address, address, vitals.trends if vitals else (), now)
        ended_list.render(found, state.findings, at)
    with details, st.container(border=True, key="finding-details"):
        if shown is None:
            st.caption("The finding of this link is not present (any more). Choose one in the list.")
        else:
            # Forms stay during an outage of the exporter: what is typed in them is sent later.
            writable = state.findings.response is not None and state.findings.response.triage_writable
            _details(settings, found, by_address, shown, now, writable=writable)


def _shown(found: ClusterFindings, by_address: Mapping[str, FindingReport], now: float) -> _Shown | None:
    """The finding of the address (`?finding=`), or else the first one; what is shown stays while it is present.

    What nobody chose gives way to the first one when it becomes a consequence of another finding. A chosen finding
    that has ended stays too, as it was seen last: a reader may still need it.
    """
    chosen: str | None = layout.get_param("finding")
    last: _Shown | None = st.session_state.get(_LAST)
    if last is not None and last.cluster != found.cluster:
        # Another cluster was selected: the choice was about the previous one.
        last = None
        if chosen is not None and chosen not in by_address:
            layout.set_param("finding", None)
            chosen = None
    if chosen is not None and chosen not in by_address:
        return last if last is not None and last.address == chosen else None
    address = chosen
    if address is None and last is not None and last.address in by_address:
        is_cause = any(by_address[last.address] is it for it in found.findings)
        address = last.address if is_cause else None
    if address is None:
        ranked = sorted(found.findings, key=lambda it: it.muted)
        if not ranked:
            return None
        address = next(name for name, finding in by_address.items() if finding is ranked[0])
    st.session_state[_LAST] = shown = _Shown(found.cluster, address, by_address[address], now)
    return shown


def _details(
    settings: PageSettings,
    found: ClusterFindings,
    by_address: Mapping[str, FindingReport],
    shown: _Shown,
    now: float,
    *,
    writable: bool,
) -> None:
    finding, key = shown.finding, "chosen"
    context = CardContext(found.cluster, now)
    present = shown.address in by_address
    # The number of elements above the forms never changes: a form that moves is closed, and what was typed is lost.
    with st.container(key="finding-before-forms"):
        finding_cards.title(key, finding, context)
        if not present:
            seen = readable.clock(shown.seen_at, now, layout.current_zone())
            st.info(f"This finding has ended. It was last seen at {seen}.", icon=":material/history:")
        parent = next((it for it in found.findings if it is not finding and finding in flat_reports((it,))), None)
        if parent is not None:
            elements.plain("parent", f"Consequence of {parent.rule}, {parent.subject}: fix that first.")
        said = triage_controls.summary(finding.triage, now)
        if said:
            elements.plain("triage-said", said)
        finding_cards.sentences(key, finding)
        if present:
            _curves(settings, found.cluster, finding, context)
        finding_cards.steps(key, finding)
        finding_cards.evidence(key, finding)
    with st.container():
        if present and writable:
            triage_controls.render(settings, found.cluster, shown.address, finding)
    finding_cards.links(finding, context)


def _curves(settings: PageSettings, cluster: str, finding: FindingReport, context: CardContext) -> None:
    about = _charted(finding, cluster)
    lines = cache.subject_series(settings.exporter, cluster, about.kind, about.vhost, about.name)
    shown = vital_metrics.proof_lines(finding, lines, about.kind)
    if not shown:
        return
    if about != finding.subject:
        what = "the whole cluster" if about.kind == "cluster" else str(about)
        elements.plain("curves-of", f"Curves of {what}:")
    finding_cards.curves("chosen", finding, shown, context)


def _charted(finding: FindingReport, cluster: str) -> Subject:
    """The subject whose series are shown: that of the finding, or an involved queue or node, or the cluster."""
    if finding.subject.kind in _CHART_KINDS:
        return finding.subject
    if finding.involved.queues:
        queue = finding.involved.queues[0]
        return Subject(kind="queue", name=queue.name, vhost=queue.vhost)
    if finding.involved.nodes:
        return Subject(kind="node", name=finding.involved.nodes[0])
    return Subject(kind="cluster", name=cluster)
