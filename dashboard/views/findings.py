"""What is wrong, as cards in the order that diagnosis ranked them: for whom, since when, why, what to do."""

import streamlit as st

from ackscope.findings import Finding, Subject
from dashboard import steps, wording
from dashboard.escape import literal, visible
from dashboard.model import ClusterFindings
from dashboard.views import parts

OPEN_CARDS = 3
"""So many are laid out in full; the others open on a click, or the page has no end."""


def render(found: ClusterFindings, now: float) -> None:
    """All findings of one cluster; `now` is seconds since 1970 on the exporter's clock."""
    for index, finding in enumerate(found.findings):
        if index < OPEN_CARDS:
            with st.container(border=True, key=f"card-{finding.severity.value}-{index}"):
                _card(index, finding, now)
        else:
            look = parts.SEVERITIES[finding.severity]
            label = f":{look.colour}[{look.icon} {look.word}] {literal(finding.rule)} {literal(str(finding.subject))}"
            with st.expander(label):
                _card(index, finding, now)


def _card(index: int, finding: Finding, now: float) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        parts.badge(parts.SEVERITIES[finding.severity])
        st.markdown(literal(finding.rule), width="content")
        st.text(_subject(finding.subject))
        with st.container(key=f"plain-since-{index}", width="content"):
            st.caption(wording.since(finding.since, now), width="content")
    with st.container(key=f"summary-{index}"):
        st.text(visible(finding.summary))
    st.text(visible(f"Cause: {finding.cause}"))
    left, right = st.columns(2, gap="medium")
    with left:
        _steps(index, finding)
    with right:
        if finding.evidence:
            parts.table(
                f"evidence-{index}",
                [
                    {
                        "Evidence": item.what,
                        "Seen": item.value,
                        "Expected": item.expected or wording.ABSENT,
                        "Source": item.source,
                    }
                    for item in finding.evidence
                ],
            )


def _steps(index: int, finding: Finding) -> None:
    st.markdown("**Do next**")
    with st.container(key=f"steps-{index}", gap="xsmall"):
        for number, text in enumerate(finding.next_steps, start=1):
            step = steps.split(text)
            st.text(f"{number}. {visible(step.prose or 'run')}{':' if step.command else ''}")
            if step.command:
                shown = visible(step.command)
                st.code(shown, language=None, wrap_lines=True)
                if shown != step.command:
                    st.caption("It holds characters that cannot be seen; they are shown as escapes: do not paste it.")
    parts.plain(f"runbook-{index}", f"Runbook: {finding.runbook}")


def _subject(subject: Subject) -> str:
    node = f" on {subject.node}" if subject.node else ""
    return visible(f"{subject}{node}")
