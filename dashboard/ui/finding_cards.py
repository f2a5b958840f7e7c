"""Findings as cards, in the order of diagnosis: subject, start time, cause, next steps and evidence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Subject
from ackscope.reports import FindingReport
from dashboard.data import model
from dashboard.data.model import ClusterFindings
from dashboard.format import readable, vital_metrics
from dashboard.format.escape import literal, visible
from dashboard.format.related_links import related_links
from dashboard.ui import elements, layout, vital_tiles

_MOST_CONSEQUENCES = 50

OPEN_CARDS = 3
"""Cards shown in full; the others open on a click, so that the page stays short."""

CLOSED_CARDS = 22
"""Cards shown as one line each; all further ones are behind a toggle."""


@dataclass(frozen=True, slots=True)
class _CardContext:
    """Data shared by all cards of a cluster; `now` is the exporter's clock, seconds since 1970."""

    cluster: str
    now: float
    subjects: Sequence[model.SubjectSeries]


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
    context = _CardContext(found.cluster, now, subjects)
    for index, finding in enumerate(found.findings[:open_cards]):
        with st.container(border=True, key=f"card-{finding.severity.value}-{index}"):
            _card(index, finding, context)
    keys = _keys(found.findings)
    closed = list(enumerate(found.findings))[open_cards:]
    for index, finding in closed[:CLOSED_CARDS]:
        _closed(index, finding, context, keys[index])
    rest = closed[CLOSED_CARDS:]
    if rest and st.toggle(f"Show {fmt.plural(len(rest), 'more finding')}", key="all-findings"):
        for index, finding in rest:
            _closed(index, finding, context, keys[index])


def _keys(findings: Sequence[FindingReport]) -> list[str]:
    """Keys of the cards. They do not depend on the rank, so an open card stays open when others move above it."""
    seen: Counter[str] = Counter()
    keys = []
    for finding in findings:
        text = f"closed-{finding.rule}-{finding.subject}-{finding.subject.node}"
        seen[text] += 1
        keys.append(f"{text}-{seen[text]}")
    return keys


def _closed(index: int, finding: FindingReport, context: _CardContext, key: str) -> None:
    """A card whose content is drawn only while it is open; drawing a hundred would take seconds at every refresh."""
    style = elements.SEVERITIES[finding.severity]
    label = f":{style.colour}[{style.icon} {style.word}] {literal(finding.rule)} {literal(str(finding.subject))}"
    box = st.expander(label, key=key, on_change="rerun")
    if box.open:
        with box:
            _card(index, finding, context)


def _card(index: int, finding: FindingReport, context: _CardContext) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        elements.badge(elements.SEVERITIES[finding.severity])
        st.markdown(literal(finding.rule), width="content")
        st.text(_subject(finding.subject))
        with st.container(key=f"plain-since-{index}", width="content"):
            st.caption(readable.since(finding.since, context.now, layout.current_zone()), width="content")
    with st.container(key=f"summary-{index}"):
        st.text(visible(finding.summary))
    st.text(visible(f"Cause: {finding.cause}"))
    _consequences(index, finding)
    left, right = st.columns(2, gap="medium")
    with left:
        _steps(index, finding)
    with right:
        if finding.evidence:
            elements.table(
                f"evidence-{index}",
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
        _trends(index, finding, context)
    _links(finding, context)


def _trends(index: int, finding: FindingReport, context: _CardContext) -> None:
    """Sparklines of the evidence that has a series."""
    lines = vital_metrics.lines_of(finding, context.subjects)
    if not lines:
        return
    with st.container(horizontal=True, gap="small", key=f"trends-{index}"):
        for line in lines:
            with st.container(width=vital_tiles.TILE_WIDTH, gap="xsmall"):
                vital_tiles.metric_tile(line)
                st.caption(f"last {readable.duration(line.line[0][0])}")


def _links(finding: FindingReport, context: _CardContext) -> None:
    """Links to pages with more about the finding."""
    with st.container(horizontal=True, gap="small"):
        for related in related_links(finding):
            layout.link(related.page, related.label, **{"cluster": context.cluster, **related.query})


def _consequences(index: int, finding: FindingReport) -> None:
    """The consequences of the finding, which are not listed as separate findings."""
    if not finding.consequences:
        return
    count = fmt.plural(len(finding.consequences), "consequence")
    with st.expander(f"{count}: expected to end with the cause"):
        elements.table(
            f"consequences-{index}",
            [
                {
                    "Rule": other.rule,
                    "Severity": other.severity.value,
                    "Subject": _subject(other.subject),
                    "Summary": other.summary,
                }
                for other in finding.consequences[:_MOST_CONSEQUENCES]
            ],
        )
        if len(finding.consequences) > _MOST_CONSEQUENCES:
            st.caption(f"{len(finding.consequences) - _MOST_CONSEQUENCES} more in /api/v1/findings.")


def _steps(index: int, finding: FindingReport) -> None:
    st.markdown("**Do next**")
    with st.container(key=f"steps-{index}", gap="xsmall"):
        for number, step in enumerate(finding.steps, start=1):
            st.text(f"{number}. {visible(step.lead)}")
            if step.command:
                shown = visible(step.command)
                st.code(shown, language=None, wrap_lines=True)
                if shown != step.command:
                    st.caption("Contains invisible characters, shown as escapes: do not paste it.")
    elements.plain(f"runbook-{index}", f"Runbook: {finding.runbook}")


def _subject(subject: Subject) -> str:
    node = f" on {subject.node}" if subject.node else ""
    return visible(f"{subject}{node}")
