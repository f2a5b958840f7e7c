"""Acknowledge a finding, name its owner, mute it for some time; stored by the exporter, for all viewers."""

from typing import Any

import streamlit as st

from ackscope.reports import FindingReport
from ackscope.triage import MAX_NAME, MAX_REASON, Triage
from dashboard.auth import person
from dashboard.data import triage
from dashboard.format import readable
from dashboard.settings import PageSettings
from dashboard.ui import cache, elements, layout

_AUTHOR = "author-of-notes"
_PROBLEM = "triage-problem"
_HOURS = {"1 hour": 1, "4 hours": 4, "1 day": 24, "3 days": 72, "7 days": 168, "30 days": 720}


def render(settings: PageSettings, cluster: str, address: str, finding: FindingReport) -> None:
    """Buttons to change what people say about the finding."""
    said = finding.triage or Triage()
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="triage"):
        acknowledged = said.acknowledged_at is not None
        st.button(
            "Withdraw acknowledgement" if acknowledged else "Acknowledge",
            key=f"acknowledge-{address}",
            icon=":material/undo:" if acknowledged else ":material/check:",
            on_click=_change,
            args=(settings, cluster, address, finding, {"acknowledged": not acknowledged}),
        )
        with st.popover("Owner", icon=":material/person:"):
            _owner_form(settings, cluster, address, finding, said)
        if said.muted_until is None:
            with st.popover("Mute", icon=":material/notifications_off:"):
                _mute_form(settings, cluster, address, finding)
        else:
            st.button(
                "End the mute",
                key=f"unmute-{address}",
                icon=":material/notifications:",
                on_click=_change,
                args=(settings, cluster, address, finding, {"mute_seconds": 0}),
            )
    problem = st.session_state.get(_PROBLEM)
    if problem is not None and problem[0] == address:
        elements.plain("triage-problem", f"Not saved: {problem[1]}")


def summary(said: Triage | None, now: float) -> str:
    """What people said, in one line: `Acknowledged by ann at 12:04 UTC. Owner: bob.`; "" if nothing."""
    if said is None:
        return ""
    zone = layout.current_zone()

    def moment(text: str | None) -> str:
        wall = readable.parse_iso(text)
        return "unknown" if wall is None else readable.clock(wall, now, zone)

    parts = []
    if said.acknowledged_at is not None:
        parts.append(f"Acknowledged{_by(said.acknowledged_by)} at {moment(said.acknowledged_at)}.")
    if said.owner:
        parts.append(f"Owner: {said.owner}.")
    if said.muted_until is not None:
        reason = f": {said.mute_reason}" if said.mute_reason else ""
        parts.append(f"Muted{_by(said.muted_by)} until {moment(said.muted_until)}{reason}.")
        if not said.muted:
            parts.append("It became more severe than it was then, so it counts again.")
    return " ".join(parts)


def _by(name: str) -> str:
    return f" by {name}" if name else ""


def _owner_form(settings: PageSettings, cluster: str, address: str, finding: FindingReport, said: Triage) -> None:
    with st.form(f"owner-form-{address}", border=False):
        owner = said.owner or _person(settings)
        st.text_input("Owner (empty: nobody)", value=owner, max_chars=MAX_NAME, key=f"owner-{address}")
        st.form_submit_button("Save owner", on_click=_own, args=(settings, cluster, address, finding))


def _mute_form(settings: PageSettings, cluster: str, address: str, finding: FindingReport) -> None:
    with st.form(f"mute-form-{address}", border=False):
        st.selectbox("Mute for", list(_HOURS), key=f"mute-for-{address}")
        st.text_input("Reason", max_chars=MAX_REASON, key=f"mute-reason-{address}")
        if not settings.has_login:
            st.text_input("Your name", value=_person(settings), max_chars=MAX_NAME, key=f"mute-by-{address}")
        st.caption("A muted finding stays in the list and in /metrics; the headline does not count it.")
        st.form_submit_button("Mute", on_click=_mute, args=(settings, cluster, address, finding))


def _own(settings: PageSettings, cluster: str, address: str, finding: FindingReport) -> None:
    owner = st.session_state[f"owner-{address}"].strip()
    _change(settings, cluster, address, finding, {"owner": owner})
    if owner and not _person(settings):
        st.session_state[_AUTHOR] = owner


def _mute(settings: PageSettings, cluster: str, address: str, finding: FindingReport) -> None:
    if not settings.has_login:
        st.session_state[_AUTHOR] = st.session_state[f"mute-by-{address}"].strip()
    seconds = _HOURS[st.session_state[f"mute-for-{address}"]] * 3600
    reason = st.session_state[f"mute-reason-{address}"]
    _change(settings, cluster, address, finding, {"mute_seconds": seconds, "reason": reason})


def _change(settings: PageSettings, cluster: str, address: str, finding: FindingReport, values: dict[str, Any]) -> None:
    """Send a change to the exporter; the run after it shows the result."""
    problem = triage.change(settings.exporter, cluster, finding, by=_person(settings), **values)
    st.session_state[_PROBLEM] = None if problem is None else (address, problem)
    cache.exporter_state.clear()


def _person(settings: PageSettings) -> str:
    """Name of the reader: of the login, or the one that was typed before."""
    name = person.name(settings) if settings.has_login else st.session_state.get(_AUTHOR)
    return (name or "")[:MAX_NAME]
