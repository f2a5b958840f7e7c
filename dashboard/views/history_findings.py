"""What comes back: every finding of the last 30 days, how often, how long, and at which hour."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.findings import Severity
from ackscope.ranking import display_name
from dashboard import shell, wording
from dashboard.views import history_parts, parts

_SHOWN = 15


def render(document: Mapping[str, Any]) -> None:
    """A row a rule and object, those that are there now first."""
    history_parts.heading(
        "What comes back", "Findings of the last 30 days. A typical time is told where most of them keep to it."
    )
    told = document.get("recurrences") or {}
    rows = told.get("rows", [])
    until = told.get("data_until")
    if not rows:
        st.caption("No finding was told in the last 30 days.")
    else:
        lines = [_row(row) for row in rows]
        parts.table("recurrences", lines[:_SHOWN])
        parts.save("recurrences", lambda: pd.DataFrame(lines))
        more = told.get("all", 0) - min(len(rows), _SHOWN)
        if more > 0:
            st.caption(f"{more} more; `ackscope pipeline ask finding RULE` tells of each.")
    if until is None:
        st.caption("Whether any is there now cannot be told: there is no data of the last two days.")
    else:
        st.caption(f"Data up to {history_parts.minute(until)} {shell.zone().name}.")


def _row(row: Mapping[str, Any]) -> dict[str, str]:
    length = row["median_seconds"]
    there = {"yes": "yes", "no": "no"}.get(row["there"], "cannot tell")
    before = "before " if row["began_before"] else ""
    known = {severity.value for severity in Severity}
    severity = row["severity"].upper() if row["severity"] in known else row["severity"]
    return {
        "Finding": f"{row['rule']} ({severity})",
        "About": display_name(row["kind"], row["vhost"], row["name"]),
        "There now": there,
        "Times": f"{row['times']:,}",
        f"Last began, {shell.zone().name}": before + history_parts.minute(row["began"]),
        "Median length": wording.ABSENT if length is None else wording.span(length),
        "Typical time": row["typical"] or wording.ABSENT,
    }
