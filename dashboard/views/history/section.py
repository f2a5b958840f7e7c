"""Elements shared by the sections of the history page."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ackscope import format as fmt
from dashboard.format import readable
from dashboard.ui import elements, layout


def heading(title: str, meaning: str) -> None:
    """The title of a section, with an explanation behind a question mark."""
    st.subheader(title, anchor=False, help=meaning)


def available(key: str, answer: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The report if it has a result; None, and the reason on the page, if not."""
    if answer is None:
        st.caption("Not available: the pipeline version that wrote the reports does not support this section.")
        return None
    if answer.get("because"):
        elements.plain(f"because-{key}", f"Unknown: {answer['because']}.")
        data(key, answer)
        return None
    return answer


def data(key: str, answer: Mapping[str, Any]) -> None:
    """The time range of the data, and its gaps."""
    known = answer.get("data") or {}
    first, last = known.get("first"), known.get("last")
    if not first or not last:
        elements.plain(
            f"data-{key}", f"Data: none since {minute(known.get('asked_from'))} {layout.current_zone().name}."
        )
        return
    gaps = known.get("gap_minutes") or 0
    gap_text = f"gaps of {readable.duration(gaps * 60)} in total" if gaps else "no gaps"
    elements.plain(f"data-{key}", f"Data: {minute(first)} to {minute(last)} {layout.current_zone().name}, {gap_text}.")


def minute(text: str | None) -> str:
    """An ISO time to the minute in the zone of the page, without the name of the zone."""
    at = readable.parse_iso(text)
    return fmt.ABSENT if at is None else readable.minute(at, layout.current_zone())


def share(value: float | None, digits: int = 3) -> str:
    """A share as a percentage, rounded down: 99.9996 % is not 100 %."""
    if value is None:
        return fmt.ABSENT
    scale = 10**digits
    return f"{int(value * 100 * scale + 1e-6) / scale:.{digits}f}".rstrip("0").rstrip(".") + " %"
