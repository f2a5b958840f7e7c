"""The queues, and probe streams, that stand out."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.measures import quantity
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.ui import elements
from dashboard.ui.layout import choose
from dashboard.views.history import section

_BY = {
    "redelivered": "redelivered messages",
    "ceiling": "time at the prefetch ceiling",
    "confirm": "confirm tail",
    "backlog": "backlog",
}
_SHARE = st.column_config.ProgressColumn("Of all", format="%.1f %%", min_value=0, max_value=100)


def render(document: Mapping[str, Any]) -> None:
    """The worst by what is chosen, with their share of all."""
    section.heading("Worst of the last 7 days", "Each with its share of the total of all.")
    by = choose(st.container(width=320), "By", list(_BY), "by", "worst-choice", words=_BY.__getitem__, hidden=True)
    answer = section.told(f"worst-{by}", (document.get("worst") or {}).get(by))
    if answer is None:
        return
    if not answer["rows"]:
        st.caption(f"{answer['told'][0][:1].upper()}{answer['told'][0][1:]}.")
    else:
        shown = pd.DataFrame([_row(by, row) for row in answer["rows"]])
        st.dataframe(
            shown,
            column_config={"Of all": _SHARE},
            hide_index=True,
            height=min(36 * (len(shown) + 1) + 2, 400),
            key=f"worst-{by}",
        )
        elements.save(f"worst-{by}-rows", lambda: shown)
    section.data(f"worst-{by}", answer)


def _row(by: str, row: Mapping[str, Any]) -> dict[str, Any]:
    share = {"Of all": row["share"] * 100}
    if by == "confirm":
        p99, p50, most = (quantity(row[name], "seconds") for name in ("value", "beside", "max"))
        who = {"Probe stream": visible(row["stream"])}
        return {**who, "p99": p99, "Median": p50, "Longest": most, **share}
    who = {"Queue": visible(row["queue"]), "Vhost": visible(row["vhost"])}
    if by == "ceiling":
        part = row["value"] / row["beside"] if row["beside"] else None
        return {
            **who,
            "At the ceiling": readable.span(row["value"]),
            "Of the time followed": section.share(part, 1),
            **share,
        }
    if by == "backlog":
        ready, most = (quantity(row[name], "messages") for name in ("value", "beside"))
        return {**who, "Ready on average": ready, "At most": most, **share}
    part = row["value"] / row["beside"] if row["beside"] else None
    return {
        **who,
        "Redelivered": quantity(row["value"], "messages"),
        "Of its deliveries": section.share(part, 1),
        **share,
    }
