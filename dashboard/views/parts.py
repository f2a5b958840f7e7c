"""Small pieces that several views share: how a severity looks, and foreign text set as plain text."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import streamlit as st

from ackscope.findings import Severity
from dashboard.escape import literal

Colour = Literal["red", "orange", "blue", "green", "gray"]


class Look(NamedTuple):
    """A state as a word, a colour and a shape: never as a colour alone."""

    word: str
    colour: Colour
    icon: str


SEVERITIES = {
    Severity.CRITICAL: Look("CRITICAL", "red", ":material/error:"),
    Severity.WARNING: Look("WARNING", "orange", ":material/warning:"),
    Severity.INFO: Look("INFO", "blue", ":material/info:"),
}
GOOD = Look("GOOD", "green", ":material/check_circle:")
UNKNOWN = Look("UNKNOWN", "gray", ":material/help:")


def badge(look: Look, text: str | None = None) -> None:
    """Show a state; `text` holds our own words and numbers only."""
    st.badge(text or look.word, icon=look.icon, color=look.colour)


def plain(key: str, text: str) -> None:
    """Small grey text that may hold foreign words, shown literally; `key` is unique on the page."""
    with st.container(key=f"plain-{key}"):
        st.caption(literal(text))


def table(key: str, rows: Sequence[Mapping[str, str]]) -> None:
    """A table of foreign words that wraps, shown literally; `key` is unique on the page."""
    with st.container(key=f"plain-{key}"):
        cells = {name: [literal(row[name]) if row[name] else "" for row in rows] for name in rows[0]}
        st.table(cells, border="horizontal", hide_index=True)
