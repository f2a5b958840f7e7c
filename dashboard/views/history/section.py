"""Small pieces that the sections of the history page share."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.format import readable
from dashboard.ui import elements, layout


def heading(title: str, meaning: str) -> None:
    """The title of a section, with what it means behind a question mark."""
    st.subheader(title, anchor=False, help=meaning)


def told(key: str, answer: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The answer where it has something to show; where it has not, say why."""
    if answer is None:
        st.caption("Not answered yet: the pipeline that wrote the answers does not know this question.")
        return None
    if answer.get("because"):
        elements.plain(f"because-{key}", f"Cannot tell: {answer['because']}.")
        data(key, answer)
        return None
    return answer


def data(key: str, answer: Mapping[str, Any]) -> None:
    """From when to when there was data, and how much is lacking."""
    known = answer.get("data") or {}
    first, last = known.get("first"), known.get("last")
    if not first or not last:
        elements.plain(f"data-{key}", f"Data: none from {minute(known.get('asked_from'))} {layout.zone().name} on.")
        return
    gaps = known.get("gap_minutes") or 0
    lacking = f"gaps of {readable.span(gaps * 60)} together" if gaps else "no gaps"
    elements.plain(f"data-{key}", f"Data: {minute(first)} to {minute(last)} {layout.zone().name}, {lacking}.")


def minute(text: str | None) -> str:
    """An ISO moment to the minute in the zone of the page, as a person writes it; the zone is named beside it."""
    at = readable.parse_iso(text)
    return readable.ABSENT if at is None else readable.minute(at, layout.zone())


def share(value: float | None, digits: int = 3) -> str:
    """A share as a percentage that is never rounded up to 100."""
    if value is None:
        return readable.ABSENT
    scale = 10**digits
    return f"{int(value * 100 * scale + 1e-6) / scale:.{digits}f}".rstrip("0").rstrip(".") + " %"
