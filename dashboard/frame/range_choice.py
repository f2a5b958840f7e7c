"""The choice of the time range that all charts share: live, or from - to."""

from datetime import datetime, timedelta

import streamlit as st

from dashboard.format import readable
from dashboard.format.timezones import Zone
from dashboard.frames.minute_frames import RANGES, Range
from dashboard.ui import elements, layout

_KEY, _FIXED, _ENTER, _ENTERING = "range-choice", "fixed", "enter", "range-entering"


def render(span: Range, zone: Zone, now: datetime) -> None:
    """A box with the live ranges, the fixed one of the address, and a dialog to enter one."""
    words = {name: f"Last {each.label}" for name, each in RANGES.items()} | {_ENTER: "From … to …"}
    current = next((name for name, each in RANGES.items() if each == span), _FIXED)
    if current == _FIXED:
        words = {_FIXED: readable.between(*span.at(now), zone), **words}
    st.session_state[_KEY] = current

    def store() -> None:
        chosen = st.session_state[_KEY]
        if chosen == _ENTER:
            st.session_state[_ENTERING] = True
        # A browser may send the range that it shows once more after a change of the page: nobody chose it.
        elif chosen not in {_FIXED, current}:
            _live(chosen)

    st.selectbox(
        "Time range",
        list(words),
        format_func=words.__getitem__,
        key=_KEY,
        on_change=store,
        label_visibility="collapsed",
        width=290 if current == _FIXED else 180,
        icon=":material/schedule:",
    )
    if current == _FIXED:
        st.button("Live", icon=":material/play_arrow:", key="clear-range", on_click=_live, help="End the range now.")
    if st.session_state.pop(_ENTERING, False):
        _enter(span, zone, now)


def _live(key: str | None = None) -> None:
    layout.set_live_range(key)
    elements.forget_selections()


@st.dialog("Time range")
def _enter(span: Range, zone: Zone, now: datetime) -> None:
    """Two inputs for a fixed range, which begin with the current one."""
    latest = zone.local(now).replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=1)
    first, last = (
        st.datetime_input(
            f"{label} ({zone.name})",
            value=min(zone.local(moment).replace(tzinfo=None, fold=0), latest),
            max_value=latest,
            step=60,
            key=f"range-{label.lower()}-{zone.name}",
        )
        for label, moment in zip(("From", "To"), span.at(now), strict=True)
    )
    st.caption("All charts of all pages show this range. It is in the address, and ends after 7 days at the latest.")
    if st.button("Show this range", type="primary", key="range-show"):
        if first >= last:
            st.warning("The start has to be before the end.")
            return
        layout.set_fixed_range(zone.to_utc(first), zone.to_utc(last))
        elements.forget_selections()
        st.rerun()
