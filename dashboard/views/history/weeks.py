"""This week compared with the previous week."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.measures import measure, quantity
from dashboard.ui import elements
from dashboard.views.history import section

_SHOWN = 5


def render(document: Mapping[str, Any]) -> None:
    """A row per measure, then the queues with the largest changes."""
    section.heading(
        "This week compared with the previous week",
        "The last 7 days and the 7 days before, restricted to hours with data in both.",
    )
    answer = section.available("weeks", document.get("weeks"))
    if answer is None:
        return
    elements.table("weeks", [_row(row) for row in answer["rows"]], saved=True)
    queues = (answer.get("more") or {}).get("queues") or []
    if queues:
        st.markdown("**Queues with the largest changes in traffic**")
        lines = [_queue(row) for row in queues]
        elements.table("weeks-queues", lines[:_SHOWN])
        elements.download("weeks-queues", lambda: pd.DataFrame(lines))
    section.data("weeks", answer)


def _row(row: Mapping[str, Any]) -> dict[str, str]:
    unit, words = row["unit"], measure(row["measure"]).words
    return {
        "Measure": words[:1].upper() + words[1:],
        "Change": _change(row["this_week"], row["week_before"]),
        "This week": quantity(row["this_week"], unit),
        "Previous week": quantity(row["week_before"], unit),
        "Compared": fmt.plural(row["hours"], "hour"),
    }


def _queue(row: Mapping[str, Any]) -> dict[str, str]:
    this, before = row["published"], row["published_before"]
    return {
        "Queue": row["queue"],
        "Vhost": row["vhost"],
        "Change": _change(this, before),
        "Published this week": quantity(this, "messages"),
        "Previous week": quantity(before, "messages"),
    }


def _change(this: float | None, before: float | None) -> str:
    """A change with an arrow; growth from zero has no percentage."""
    if this is None or before is None:
        return fmt.ABSENT
    if this == before:
        return "unchanged"
    arrow = "▲" if this > before else "▼"
    if before == 0:
        return f"{arrow} from zero"
    change = this / before - 1
    return f"{arrow} {this / before:.3g} times" if change >= 1 else f"{arrow} {change * 100:+.3g} %"
