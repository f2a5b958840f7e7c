"""What is wrong, as cards in the order that diagnosis ranked them: for whom, since when, why, what to do."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from ackscope.findings import Finding, Subject
from dashboard.data import model
from dashboard.data.model import ClusterFindings
from dashboard.format import next_steps, readable, vital_metrics
from dashboard.format.escape import literal, visible
from dashboard.format.related_links import ways
from dashboard.ui import elements, layout, metric_tile

_MOST_CONSEQUENCES = 50

OPEN_CARDS = 3
"""So many are laid out in full; the others open on a click, or the page has no end."""

CLOSED_CARDS = 22
"""So many more have a line each; what is beyond waits behind one click."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What every card of a cluster needs: `now` is seconds since 1970 on the exporter's clock."""

    cluster: str
    now: float
    subjects: Sequence[model.SubjectSeries]


def render(
    found: ClusterFindings, now: float, open_cards: int = OPEN_CARDS, subjects: Sequence[model.SubjectSeries] = ()
) -> None:
    """All findings of one cluster.

    Args:
        found: them, ranked.
        now: seconds since 1970 on the exporter's clock.
        open_cards: so many are laid out in full.
        subjects: lines of what they are about, as far as they are known.
    """
    told = _Told(found.cluster, now, subjects)
    for index, finding in enumerate(found.findings[:open_cards]):
        with st.container(border=True, key=f"card-{finding.severity.value}-{index}"):
            _card(index, finding, told)
    keys = _keys(found.findings)
    closed = list(enumerate(found.findings))[open_cards:]
    for index, finding in closed[:CLOSED_CARDS]:
        _closed(index, finding, told, keys[index])
    rest = closed[CLOSED_CARDS:]
    if rest and st.toggle(f"Show {readable.plural(len(rest), 'more finding')}", key="all-findings"):
        for index, finding in rest:
            _closed(index, finding, told, keys[index])


def _keys(findings: Sequence[Finding]) -> list[str]:
    """What names each on the page, whatever its rank: one that somebody opened stays open when others come first."""
    seen: Counter[str] = Counter()
    keys = []
    for finding in findings:
        text = f"closed-{finding.rule}-{finding.subject}-{finding.subject.node}"
        seen[text] += 1
        keys.append(f"{text}-{seen[text]}")
    return keys


def _closed(index: int, finding: Finding, told: _Told, key: str) -> None:
    """A card that is laid out once it is opened: a hundred that nobody reads cost seconds at every refresh."""
    look = elements.SEVERITIES[finding.severity]
    label = f":{look.colour}[{look.icon} {look.word}] {literal(finding.rule)} {literal(str(finding.subject))}"
    box = st.expander(label, key=key, on_change="rerun")
    if box.open:
        with box:
            _card(index, finding, told)


def _card(index: int, finding: Finding, told: _Told) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        elements.badge(elements.SEVERITIES[finding.severity])
        st.markdown(literal(finding.rule), width="content")
        st.text(_subject(finding.subject))
        with st.container(key=f"plain-since-{index}", width="content"):
            st.caption(readable.since(finding.since, told.now, layout.zone()), width="content")
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
                        "Expected": item.expected or readable.ABSENT,
                        "Source": item.source,
                    }
                    for item in finding.evidence
                ],
            )
        _lately(index, finding, told)
    _further(finding, told)


def _lately(index: int, finding: Finding, told: _Told) -> None:
    """How that of its evidence went of which a line is held."""
    lines = vital_metrics.lines_of(finding, told.subjects)
    if not lines:
        return
    with st.container(horizontal=True, gap="small", key=f"lately-{index}"):
        for line in lines:
            with st.container(width=metric_tile.WIDE, gap="xsmall"):
                metric_tile.figure(line)
                st.caption(f"last {readable.span(line.line[0][0])}")


def _further(finding: Finding, told: _Told) -> None:
    """To what tells more of it, each a link that can be opened in another window or sent to somebody."""
    with st.container(horizontal=True, gap="small"):
        for way in ways(finding):
            layout.link(way.page, way.label, **{"cluster": told.cluster, **way.query})


def _consequences(index: int, finding: Finding) -> None:
    """What follows from it: no findings of their own, for they end with their cause."""
    if not finding.consequences:
        return
    count = readable.plural(len(finding.consequences), "consequence")
    with st.expander(f"{count}, which should end with the cause"):
        elements.table(
            f"consequences-{index}",
            [
                {
                    "What": other.rule,
                    "Severity": other.severity.value,
                    "About": _subject(other.subject),
                    "Told": other.summary,
                }
                for other in finding.consequences[:_MOST_CONSEQUENCES]
            ],
        )
        if len(finding.consequences) > _MOST_CONSEQUENCES:
            st.caption(f"{len(finding.consequences) - _MOST_CONSEQUENCES} more; /api/v1/findings has them all.")


def _steps(index: int, finding: Finding) -> None:
    st.markdown("**Do next**")
    with st.container(key=f"steps-{index}", gap="xsmall"):
        for number, text in enumerate(finding.next_steps, start=1):
            step = next_steps.split(text)
            st.text(f"{number}. {visible(step.prose or 'run')}{':' if step.command else ''}")
            if step.command:
                shown = visible(step.command)
                st.code(shown, language=None, wrap_lines=True)
                if shown != step.command:
                    st.caption("It holds characters that cannot be seen; they are shown as escapes: do not paste it.")
    elements.plain(f"runbook-{index}", f"Runbook: {finding.runbook}")


def _subject(subject: Subject) -> str:
    node = f" on {subject.node}" if subject.node else ""
    return visible(f"{subject}{node}")
