"""The page "History": for the morning after. What changed, what comes back, what is worst, and when is it full?"""

import streamlit as st

from ackscope.clock import SystemClock
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import elements, history_cache, layout
from dashboard.ui.layout import PageContext, choose_range
from dashboard.views.history import bands, capacity, changes, recurrences, slo, weeks, worst

_OLD = 2 * 3600 + 600
"""Seconds: the answers are made once an hour; after two it was missed."""


def render(place: PageContext) -> None:
    """What changed around a moment, then the standing questions, then one queue over what is usual."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    changes.render(place, place.cluster)
    _standing(place, place.cluster)
    bands.render(place, place.cluster, choose_range("Against what is usual at that hour"))


@st.fragment(run_every="60s")
def _standing(place: PageContext, cluster: str) -> None:
    found = history_cache.answers(place.settings.rollups, cluster)
    if found.problem is not None:
        with st.container(key="plain-answers-problem"):
            st.warning(f"The answers cannot be read: {literal(found.problem)}", icon=":material/warning:")
        return
    if not found.document:
        elements.plain(
            "no-answers", f"No answers under {place.settings.rollups} yet. The pipeline makes them every hour:"
        )
        st.code(f"ackscope pipeline stream --landing DIR --rollups {place.settings.rollups}", language=None)
        return
    _age(found.document.get("made_at"))
    for each in (recurrences, slo, worst, weeks, capacity):
        each.render(found.document)


def _age(made_at: str | None) -> None:
    made, now = readable.parse_iso(made_at), SystemClock().now().wall
    if made is None:
        return
    text = f"The answers below are of {readable.clock(made, now, layout.zone())}, {readable.span(now - made)} ago"
    if now - made > _OLD:
        elements.badge(elements.UNKNOWN, f"{text} (stale: is `ackscope pipeline stream` running?)")
    else:
        st.caption(f"{text}; the pipeline makes them anew every hour.")
