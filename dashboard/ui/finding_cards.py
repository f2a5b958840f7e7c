"""One finding in full, and findings as cards: subject, start time, cause, curves, next steps and evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Subject
from ackscope.reports import FindingReport
from dashboard.charts import onset_curves
from dashboard.data import model, runbooks
from dashboard.data.model import ClusterFindings, MetricSeries
from dashboard.format import readable, vital_metrics
from dashboard.format.escape import literal, visible
from dashboard.format.related_links import related_links
from dashboard.frame.scripts import COPY_COMMANDS
from dashboard.frames import finding_rows
from dashboard.settings import PageSettings
from dashboard.ui import cache, elements, layout, vital_tiles

_MOST_CONSEQUENCES = 50

OPEN_CARDS = 3
"""Cards shown in full; the others open on a click, so that the page stays short."""

CLOSED_CARDS = 22
"""Cards shown as one line each; all further ones are behind a toggle."""


@dataclass(frozen=True, slots=True)
class CardContext:
    """Data shared by all cards of a cluster; `now` is the exporter's clock, seconds since 1970."""

    cluster: str
    now: float
    subjects: Sequence[model.SubjectSeries] = ()


def render(
    found: ClusterFindings, now: float, open_cards: int = OPEN_CARDS, subjects: Sequence[model.SubjectSeries] = ()
) -> None:
    """Cards of all findings of one cluster.

    Args:
        found: the findings, ranked.
        now: the exporter's clock, seconds since 1970.
        open_cards: number of cards shown in full.
        subjects: known series of the subjects.
    """
    context = CardContext(found.cluster, now, subjects)
    for index, finding in enumerate(found.findings[:open_cards]):
        with st.container(border=True, key=f"card-{finding.severity.value}-{index}"):
            card(str(index), finding, context)
    keys = {id(finding): address for address, finding in finding_rows.addresses(found.findings).items()}
    closed = list(enumerate(found.findings))[open_cards:]
    for index, finding in closed[:CLOSED_CARDS]:
        _closed(index, finding, context, keys[id(finding)])
    rest = closed[CLOSED_CARDS:]
    if rest and st.toggle(f"Show {fmt.plural(len(rest), 'more finding')}", key="all-findings"):
        for index, finding in rest:
            _closed(index, finding, context, keys[id(finding)])


def _closed(index: int, finding: FindingReport, context: CardContext, key: str) -> None:
    """A card whose content is drawn only while it is open; drawing a hundred would take seconds at every refresh."""
    style = elements.SEVERITIES[finding.severity]
    label = f":{style.colour}[{style.icon} {style.word}] {literal(finding.rule)} {literal(str(finding.subject))}"
    box = st.expander(label, key=f"closed-{key}", on_change="rerun")
    if box.open:
        with box:
            card(str(index), finding, context)


def card(key: str, finding: FindingReport, context: CardContext) -> None:
    """One finding in full; `key` is unique on the page."""
    title(key, finding, context)
    sentences(key, finding)
    _trends(key, finding, context)
    steps(key, finding)
    evidence(key, finding)
    links(finding, context)


def title(key: str, finding: FindingReport, context: CardContext) -> None:
    """Severity, rule, subject and start time."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"title-{key}"):
        elements.badge(elements.SEVERITIES[finding.severity])
        with st.container(key=f"plain-rule-{key}", width="content"):
            st.markdown(f"**{literal(finding.rule)}**", width="content")
        st.text(subject_text(finding.subject), width="content")
        with st.container(key=f"plain-since-{key}", width="content"):
            st.caption(readable.since(finding.since, context.now, layout.current_zone()), width="content")


def sentences(key: str, finding: FindingReport) -> None:
    """Summary, cause and consequences."""
    with st.container(key=f"summary-{key}"):
        st.text(visible(finding.summary))
    st.text(visible(f"Cause: {finding.cause}"))
    _consequences(key, finding)


def curves(key: str, finding: FindingReport, lines: Sequence[MetricSeries], context: CardContext) -> None:
    """Series with the moment at which the finding began; `lines` are those of `vital_metrics.proof_lines`."""
    began = readable.parse_iso(finding.since)
    moment = "" if began is None else readable.clock(began, context.now, layout.current_zone())
    with st.container(key=f"curves-{key}"):
        st.html(onset_curves.curves(lines, None if began is None else context.now - began, moment))


def steps(key: str, finding: FindingReport) -> None:
    """What to do, with commands to copy, and a button that opens the runbook."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Do next**", width="content")
        if st.button("Runbook", key=f"runbook-{key}", type="tertiary", icon=":material/menu_book:"):
            _runbook(finding)
        if any(step.command for step in finding.steps):
            st.html(COPY_COMMANDS, unsafe_allow_javascript=True)
    with st.container(key=f"steps-{key}", gap="xsmall"):
        for number, step in enumerate(finding.steps, start=1):
            st.text(f"{number}. {visible(step.lead)}")
            if step.command:
                elements.command(step.command)
                if visible(step.command) != step.command:
                    st.caption("Contains invisible characters, shown as escapes: do not paste it.")


@st.dialog("Runbook", width="large")
def _runbook(finding: FindingReport) -> None:
    text, problem = runbooks.read(PageSettings.from_environ().exporter, finding.rule)
    if text is None:
        st.text(f"{finding.runbook} cannot be shown: {problem}.")
    else:
        st.markdown(text)


def evidence(key: str, finding: FindingReport) -> None:
    """The observations that the finding rests on."""
    if finding.evidence:
        elements.table(
            f"evidence-{key}",
            [
                {
                    "Evidence": item.what,
                    "Seen": item.value,
                    "Expected": item.expected or fmt.ABSENT,
                    "Source": item.source,
                }
                for item in finding.evidence
            ],
        )


def links(finding: FindingReport, context: CardContext) -> None:
    """Links to pages with more about the finding."""
    settings = PageSettings.from_environ()

    def consumes(who: str) -> bool:
        known = cache.consuming(settings.exporter, context.cluster)
        return known is None or who in known

    has_history = cache.last_minute(settings.rollups, context.cluster) is not None
    with st.container(horizontal=True, gap="small"):
        for related in related_links(finding, consumes, has_history=has_history):
            layout.link(related.page, related.label, **{"cluster": context.cluster, **related.query})


def subject_text(subject: Subject) -> str:
    """The subject with its node, in one line."""
    node = f" on {subject.node}" if subject.node else ""
    return visible(f"{subject}{node}")


def _trends(key: str, finding: FindingReport, context: CardContext) -> None:
    """Sparklines of the evidence that has a series."""
    lines = vital_metrics.lines_of(finding, context.subjects)
    if not lines:
        return
    with st.container(horizontal=True, gap="small", key=f"trends-{key}"):
        for line in lines:
            with st.container(width=vital_tiles.TILE_WIDTH, gap="xsmall"):
                vital_tiles.metric_tile(line)
                st.caption(f"last {readable.duration(line.line[0][0])}")


def _consequences(key: str, finding: FindingReport) -> None:
    """The consequences of the finding, which are not listed as separate findings."""
    if not finding.consequences:
        return
    count = fmt.plural(len(finding.consequences), "consequence")
    with st.expander(f"{count}: expected to end with the cause"):
        elements.table(
            f"consequences-{key}",
            [
                {
                    "Rule": other.rule,
                    "Severity": other.severity.value,
                    "Subject": subject_text(other.subject),
                    "Summary": other.summary,
                }
                for other in finding.consequences[:_MOST_CONSEQUENCES]
            ],
        )
        if len(finding.consequences) > _MOST_CONSEQUENCES:
            st.caption(f"{len(finding.consequences) - _MOST_CONSEQUENCES} more in /api/v1/findings.")
