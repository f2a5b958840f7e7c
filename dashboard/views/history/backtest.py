"""The last backtest: thresholds side by side, and what is proposed."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ackscope import format as fmt
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext
from dashboard.views.history import section


def render(context: PageContext, cluster: str) -> None:
    """A row per setting, the proposal as configuration, and what cannot be replayed; nothing without a backtest."""
    found = cache.backtest(context.settings.rollups, cluster)
    if found.problem is not None:
        elements.plain("backtest-problem", f"Cannot read the backtest: {found.problem}")
        return
    if not found.document:
        return
    document, asked = found.document, found.document["asked"]
    section.heading(
        "Backtest: other thresholds over the recorded history",
        "What diagnosis would have reported with other thresholds, compared with what really happened.",
    )
    data = document["data"]
    st.caption(
        f"{literal(fmt.join(asked['rules']))}; {section.minute(data['first'])} to {section.minute(data['last'])}; "
        f"made {section.minute(document['made_at'])}."
    )
    elements.table("backtest", [_row(it) for it in document["settings"]], saved=True)
    elements.plain("backtest-meaning", document["meaning"])
    if document["configuration"]:
        st.markdown("**Proposed configuration of the exporter**")
        st.code(document["configuration"], language="yaml")
    for number, line in enumerate(document["told"]):
        elements.plain(f"backtest-{number}", line)


def _row(it: Mapping[str, Any]) -> dict[str, str]:
    earlier = it["earlier_seconds"]
    if earlier is None:
        after = fmt.ABSENT
    else:
        after = readable.duration(-earlier) if earlier <= 0 else f"{readable.duration(earlier)} before"
    return {
        "Setting": it["setting"],
        "Begins": fmt.number(it["begins"]),
        "False": fmt.number(it["false"]),
        "False a week": fmt.number(it["false_a_week"]),
        "Found": fmt.number(it["found"]),
        "Lost": fmt.number(it["lost"]),
        "After its beginning": after,
        "Again within 1 h": fmt.number(it["again"]),
    }
