"""Probe messages confirmed in time: the share, what is left of the error budget, and how fast it burns."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ackscope.findings import Severity
from ackscope.measures import quantity
from dashboard.format import readable
from dashboard.ui import elements
from dashboard.views.history import section


def render(document: Mapping[str, Any]) -> None:
    """All streams in large, then a row a stream."""
    answer = document.get("slo")
    asked = (answer or {}).get("asked", {})
    target = asked.get("target", 0.999)
    section.heading(
        f"Confirmed within {quantity(asked.get('under_seconds', 0.1), 'seconds')}: {section.share(target)} is the goal",
        "Share of probe messages that were confirmed in time; those that were lost, undecided or refused count as bad. "
        "A burn of 1 spends exactly the error budget; above it, the budget ends before the time does.",
    )
    answer = section.told("slo", answer)
    if answer is None:
        return
    rows = answer["rows"]
    whole = next((row for row in rows if row["stream"] == "all"), None)
    if whole is not None:
        _whole(whole, target)
    streams = [row for row in rows if row["stream"] != "all"]
    if streams:
        elements.table("slo", [_row(row, target) for row in streams], saved=True)
    elements.plain("slo-counted", f"How it is counted: {answer['told'][0]}.")
    section.data("slo", answer)


def _whole(row: Mapping[str, Any], target: float) -> None:
    left = row["budget_left"]
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if row["good"] >= target:
            elements.badge(elements.GOOD, "met")
        elif row["good_at_most"] < target:
            elements.badge(elements.SEVERITIES[Severity.WARNING], "not met")
        else:
            elements.badge(elements.UNKNOWN, "met or not: between two buckets")
        figures = {"In time": _between(row), "Of messages": readable.count(row["messages"])}
        figures |= {f"Burn, {window}": _rate(rate) for window, rate in row["burn"].items()}
        for name, text in figures.items():
            with st.container(width=190 if name == "In time" else 130):
                st.metric(name, text)
    if left is not None:
        gone = row["gone_in_seconds"]
        ends = f", gone in {readable.span(gone)} at the rate of the last 6 h" if gone else ""
        text = f"error budget: {max(left, 0) * 100:.0f} % left{ends}" if left > 0 else "error budget: spent"
        st.progress(min(max(left, 0.0), 1.0), text=text)


def _between(row: Mapping[str, Any]) -> str:
    low, high = section.share(row["good"]), section.share(row["good_at_most"])
    return low if low == high else f"{low} to {high}"


def _rate(rate: float | None) -> str:
    return readable.ABSENT if rate is None else f"{rate:.2g}"


def _row(row: Mapping[str, Any], target: float) -> dict[str, str]:
    left, gone = row["budget_left"], row["gone_in_seconds"]
    met = "met" if row["good"] >= target else "not met" if row["good_at_most"] < target else "met or not"
    return {
        "Probe stream": row["stream"],
        "In time": f"{_between(row)} ({met})",
        "Bad": f"{row['bad']:,} of {row['messages']:,}",
        "Budget left": readable.ABSENT if left is None else f"{left * 100:.0f} %" if left > 0 else "spent",
        "Burn 1 h / 6 h / 3 d": " / ".join(_rate(rate) for rate in row["burn"].values()),
        "Gone in": readable.span(gone) if gone else readable.ABSENT,
    }
