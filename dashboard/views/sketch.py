"""A figure with the line of its last minutes below it."""

import streamlit as st

from dashboard import signs, sparks
from dashboard.model import Line

WIDE = 140
"""Pixels of one figure: seven of them fit side by side."""


def figure(
    line: Line, *, band: tuple[float, float] | None = None, outside: bool = False, meaning: str | None = None
) -> None:
    """The latest value in large, and how it went: our own words and numbers only.

    Args:
        line: of a name that `signs.LABELS` knows.
        band: edges of what is usual.
        outside: the latest value is not within.
        meaning: behind a question mark.
    """
    st.metric(signs.LABELS[line.name], signs.figure(line), help=meaning)
    picture = sparks.spark(line.line, band, outside=outside)
    if picture is not None:
        st.image(picture, width=sparks.WIDTH, alt=signs.told(line))
