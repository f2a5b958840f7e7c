"""The worst queues and probe streams of the last 7 days."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.measures import quantity
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.ui import elements
from dashboard.ui.layout import select
from dashboard.views.history import section

_BY = {
    "redelivered": "redelivered messages",
    "ceiling": "time at the prefetch limit",
    "confirm": "slowest confirms",
    "backlog": "backlog",
}
_SHARE = st.column_config.ProgressColumn("Share", format="%.1f %%", min_value=0, max_value=100)


def render(document: Mapping[str, Any]) -> None:
    """The worst by the selected measure (`?by=`), with their share of the total."""
    section.heading("Worst of the last 7 days", "Each with its share of the total.")
    by = select(st.container(width=320), "By", list(_BY), "by", "worst-choice", words=_BY.__getitem__, hidden=True)
    answer = section.available(f"worst-{by}", (document.get("worst") or {}).get(by))
    if answer is None:
        return
    if not answer["rows"]:
        st.caption(f"{answer['told'][0][:1].upper()}{answer['told'][0][1:]}.")
    else:
        shown = pd.DataFrame([_row(by, row) for row in answer["rows"]])
        st.dataframe(
            shown,
            column_config={"Share": _SHARE},
            hide_index=True,
            height=min(36 * (len(shown) + 1) + 2, 400),
            key=f"worst-{by}",
        )
        elements.download(f"worst-{by}-rows", lambda: shown)
    section.data(f"worst-{by}", answer)


def _row(by: str, row: Mapping[str, Any]) -> dict[str, Any]:
    share = {"Share": row["share"] * 100}
    if by == "confirm":
        p99, p50, most = (quantity(row[name], "seconds") for name in ("value", "beside", "max"))
        who = {"Probe stream": visible(row["stream"])}
        return {**who, "p99": p99, "Median": p50, "Max": most, **share}
    who = {"Queue": visible(row["queue"]), "Vhost": visible(row["vhost"])}
    if by == "ceiling":
        part = row["value"] / row["beside"] if row["beside"] else None
        return {
            **who,
            "At the limit": readable.duration(row["value"]),
            "Of the observed time": section.share(part, 1),
            **share,
        }
    if by == "backlog":
        ready, most = (quantity(row[name], "messages") for name in ("value", "beside"))
        return {**who, "Ready on average": ready, "Max": most, **share}
    part = row["value"] / row["beside"] if row["beside"] else None
    return {
        **who,
        "Redelivered": quantity(row["value"], "messages"),
        "Of its deliveries": section.share(part, 1),
        **share,
    }
