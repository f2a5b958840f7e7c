"""Forecast: when disk, memory and backlog reach their limits if the trend continues."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ackscope.findings import Severity
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.ui import elements
from dashboard.ui.elements import BadgeStyle
from dashboard.views.history import section

_SOON_SECONDS = 7 * 86400.0
_SHOWN = 12


def render(document: Mapping[str, Any]) -> None:
    """A line per resource, the one that reaches its limit first on top."""
    section.heading(
        "Capacity forecast",
        "A robust trend of the last 14 days without the daily pattern. The range has a confidence of 90 %. Resources "
        "without a trend, or with too little history, say so.",
    )
    answer = section.available("capacity", document.get("capacity"))
    if answer is None:
        return
    made = readable.parse_iso(document.get("made_at")) or 0.0
    lines = list(zip(answer["rows"], answer["told"], strict=True))
    _lines(lines[:_SHOWN], made)
    if len(lines) > _SHOWN:
        with st.expander(f"{len(lines) - _SHOWN} more"):
            _lines(lines[_SHOWN:], made)
    section.data("capacity", answer)


def _lines(lines: list[tuple[Mapping[str, Any], str]], made: float) -> None:
    for row, sentence in lines:
        badge, text = st.columns([1, 6], gap="small", vertical_alignment="center")
        with badge:
            elements.badge(_style(row, made))
        with text:
            st.text(visible(sentence))


def _style(row: Mapping[str, Any], made: float) -> BadgeStyle:
    verdict = row["verdict"]
    if verdict == "is over it":
        return elements.SEVERITIES[Severity.CRITICAL]._replace(word="at the limit")
    if verdict == "reaches it":
        soon = row["earliest"] is not None and row["earliest"] - made < _SOON_SECONDS
        return elements.SEVERITIES[Severity.WARNING if soon else Severity.INFO]._replace(word="reaches limit")
    unknown = {"not yet": "too little data", "no limit is known": "limit unknown"}
    if verdict in unknown:
        return elements.UNKNOWN._replace(word=unknown[verdict])
    return elements.GOOD._replace(word=verdict)
