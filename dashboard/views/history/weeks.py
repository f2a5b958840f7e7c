"""This week against the one before."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.measures import measure, quantity
from dashboard.format import readable
from dashboard.ui import elements
from dashboard.views.history import section

_SHOWN = 5


def render(document: Mapping[str, Any]) -> None:
    """A row a measure, then the queues that moved by most."""
    section.heading(
        "This week against the one before",
        "The last seven days and the seven before, by the hours only that both have data of.",
    )
    answer = section.told("weeks", document.get("weeks"))
    if answer is None:
        return
    elements.table("weeks", [_row(row) for row in answer["rows"]], saved=True)
    queues = (answer.get("more") or {}).get("queues") or []
    if queues:
        st.markdown("**Queues whose traffic moved by most**")
        lines = [_queue(row) for row in queues]
        elements.table("weeks-queues", lines[:_SHOWN])
        elements.save("weeks-queues", lambda: pd.DataFrame(lines))
    section.data("weeks", answer)


def _row(row: Mapping[str, Any]) -> dict[str, str]:
    unit, words = row["unit"], measure(row["measure"]).words
    return {
        "What": words[:1].upper() + words[1:],
        "Change": _change(row["this_week"], row["week_before"]),
        "This week": quantity(row["this_week"], unit),
        "Week before": quantity(row["week_before"], unit),
        "Compared": readable.plural(row["hours"], "hour"),
    }


def _queue(row: Mapping[str, Any]) -> dict[str, str]:
    this, before = row["published"], row["published_before"]
    return {
        "Queue": row["queue"],
        "Vhost": row["vhost"],
        "Change": _change(this, before),
        "Published this week": quantity(this, "messages"),
        "Week before": quantity(before, "messages"),
    }


def _change(this: float | None, before: float | None) -> str:
    """With an arrow beside the sign; a growth out of nothing has no percentage."""
    if this is None or before is None:
        return readable.ABSENT
    if this == before:
        return "the same"
    arrow = "▲" if this > before else "▼"
    if before == 0:
        return f"{arrow} from nothing"
    change = this / before - 1
    return f"{arrow} {this / before:.3g} times" if change >= 1 else f"{arrow} {change * 100:+.3g} %"
