"""Recurring findings of the last 30 days: how often, how long, and at which hour."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.ranking import display_name
from dashboard.format import readable
from dashboard.ui import elements, layout
from dashboard.views.history import section

_SHOWN = 15


def render(document: Mapping[str, Any]) -> None:
    """A row per rule and object, active findings first."""
    section.heading(
        "Recurring findings", "Findings of the last 30 days. The typical time is shown if most occurrences match it."
    )
    answer = document.get("recurrences") or {}
    rows = answer.get("rows", [])
    until = answer.get("data_until")
    if not rows:
        st.caption("No findings in the last 30 days.")
    else:
        lines = [_row(row) for row in rows]
        elements.table("recurrences", lines[:_SHOWN])
        elements.download("recurrences", lambda: pd.DataFrame(lines))
        more = answer.get("all", 0) - min(len(rows), _SHOWN)
        if more > 0:
            st.caption(f"{more} more; use `ackscope pipeline ask finding RULE` for details.")
    if until is None:
        st.caption("Unknown whether any is active: no data from the last two days.")
    else:
        st.caption(f"Data until {section.minute(until)} {layout.current_zone().name}.")


def _row(row: Mapping[str, Any]) -> dict[str, str]:
    length = row["median_seconds"]
    active = {"yes": "yes", "no": "no"}.get(row["there"], "unknown")
    before = "before " if row["began_before"] else ""
    known = {severity.value for severity in Severity}
    severity = row["severity"].upper() if row["severity"] in known else row["severity"]
    return {
        "Finding": f"{row['rule']} ({severity})",
        "Subject": display_name(row["kind"], row["vhost"], row["name"]),
        "Active": active,
        "Occurrences": f"{row['times']:,}",
        f"Last start, {layout.current_zone().name}": before + section.minute(row["began"]),
        "Median duration": fmt.ABSENT if length is None else readable.duration(length),
        "Typical time": row["typical"] or fmt.ABSENT,
    }
