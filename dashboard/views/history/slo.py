"""SLO of probe messages: share confirmed in time, remaining error budget, burn rate."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.measures import quantity
from dashboard.format import readable
from dashboard.ui import elements
from dashboard.views.history import section


def render(document: Mapping[str, Any]) -> None:
    """All streams together, then a table row per stream."""
    answer = document.get("slo")
    query = (answer or {}).get("asked", {})
    target = query.get("target", 0.999)
    section.heading(
        f"Confirmed within {quantity(query.get('under_seconds', 0.1), 'seconds')}: target {section.share(target)}",
        "Share of probe messages that were confirmed in time. Lost, refused and timed-out messages count as bad. A "
        "burn rate of 1 uses exactly the error budget; at a higher rate the budget runs out early.",
    )
    answer = section.available("slo", answer)
    if answer is None:
        return
    rows = answer["rows"]
    total = next((row for row in rows if row["stream"] == "all"), None)
    if total is not None:
        _total(total, target)
    streams = [row for row in rows if row["stream"] != "all"]
    if streams:
        elements.table("slo", [_row(row, target) for row in streams], saved=True)
    elements.plain("slo-counted", f"Calculation: {answer['told'][0]}.")
    section.data("slo", answer)


def _total(row: Mapping[str, Any], target: float) -> None:
    left = row["budget_left"]
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if row["good"] >= target:
            elements.badge(elements.GOOD, "met")
        elif row["good_at_most"] < target:
            elements.badge(elements.SEVERITIES[Severity.WARNING], "not met")
        else:
            elements.badge(elements.UNKNOWN, "inconclusive: between two buckets")
        metrics = {"In time": _between(row), "Of messages": readable.count(row["messages"])}
        metrics |= {f"Burn, {window}": _rate(rate) for window, rate in row["burn"].items()}
        for name, text in metrics.items():
            with st.container(width=190 if name == "In time" else 130):
                st.metric(name, text)
    if left is not None:
        exhausted_in = row["gone_in_seconds"]
        forecast = (
            f", exhausted in {readable.duration(exhausted_in)} at the rate of the last 6 h" if exhausted_in else ""
        )
        text = f"error budget: {max(left, 0) * 100:.0f} % left{forecast}" if left > 0 else "error budget: exhausted"
        st.progress(min(max(left, 0.0), 1.0), text=text)


def _between(row: Mapping[str, Any]) -> str:
    low, high = section.share(row["good"]), section.share(row["good_at_most"])
    return low if low == high else f"{low} to {high}"


def _rate(rate: float | None) -> str:
    return fmt.ABSENT if rate is None else f"{rate:.2g}"


def _row(row: Mapping[str, Any], target: float) -> dict[str, str]:
    left, exhausted_in = row["budget_left"], row["gone_in_seconds"]
    met = "met" if row["good"] >= target else "not met" if row["good_at_most"] < target else "inconclusive"
    return {
        "Probe stream": row["stream"],
        "In time": f"{_between(row)} ({met})",
        "Bad": f"{row['bad']:,} of {row['messages']:,}",
        "Budget left": fmt.ABSENT if left is None else f"{left * 100:.0f} %" if left > 0 else "exhausted",
        "Burn 1 h / 6 h / 3 d": " / ".join(_rate(rate) for rate in row["burn"].values()),
        "Exhausted in": readable.duration(exhausted_in) if exhausted_in else fmt.ABSENT,
    }
