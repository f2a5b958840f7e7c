"""Changes around a time: which object changed first, and by how much."""

from datetime import datetime, timedelta

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.ranking import ChangedObject, describe_change, describe_parts, display_name, rank_changes, repeat_suffix
from dashboard.charts import history_charts
from dashboard.data.history_answers import ChangesInRange
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.format.timezones import Zone
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext, select, time_input
from dashboard.views.history import section

_AROUND = {"15m": 900.0, "1h": 3600.0, "3h": 3 * 3600.0, "12h": 12 * 3600.0, "24h": 24 * 3600.0}
_WORDS = {"15m": "15 minutes", "1h": "1 hour", "3h": "3 hours", "12h": "12 hours", "24h": "24 hours"}
_SHOWN = 20


def render(context: PageContext, cluster: str) -> None:
    """Inputs for the time, and the ranked changes around it."""
    section.heading(
        "What changed",
        "Change points of metrics, and findings that started. The earliest is on top: a cause changes before its "
        "effects. Changes within 2 minutes of each other are ordered by size.",
    )
    now = SystemClock().now().utc.replace(second=0, microsecond=0)
    centre, around = _time_and_width(now)
    start, end = centre - timedelta(seconds=around), min(centre + timedelta(seconds=around), now)
    found = cache.changes(context.settings.rollups, cluster, start, end)
    if _has_data(found, start, end, context.zone):
        changed = rank_changes(found.shifts, found.episodes, centre.timestamp(), around)
        _show(changed, Axis.between(start, end, 1, context.zone), centre, context.zone)


def _time_and_width(now: datetime) -> tuple[datetime, float]:
    """The time of the address (`?at=`), or else now, and the seconds before and after it (`?around=`)."""
    at, around = st.columns([2, 1], vertical_alignment="bottom")
    selected = time_input(at, "Around", "at", "moment-choice", now)
    span = select(
        around,
        "Before and after",
        list(_AROUND),
        "around",
        "around-choice",
        first="3h",
        words=_WORDS.__getitem__,
    )
    return selected, _AROUND[span]


def _has_data(found: ChangesInRange, start: datetime, end: datetime, zone: Zone) -> bool:
    """Whether there is anything to rank; if not, says why."""
    if found.problem is not None:
        elements.plain("moves-problem", f"Cannot read the history: {found.problem}")
        return False
    if not found.analysed:
        st.caption("The history has not been analysed yet. The pipeline does so every hour.")
        return False
    if found.hours_with_data == 0:
        st.caption(f"Unknown: no data from {readable.between(start, end, zone)}.")
        return False
    return True


def _show(changed: tuple[ChangedObject, ...], axis: Axis, centre: datetime, zone: Zone) -> None:
    if not changed:
        st.markdown(f"No changes from {readable.between(axis.start, axis.end, zone)}, and no finding started.")
        return
    first, waves = changed[0], max(it.wave for it in changed) + 1
    began = f"{zone.local(first.at):%Y-%m-%d %H:%M}"
    with st.container(key="summary-moved"):
        st.text(visible(f"First change: {_who(first)}, {began} {zone.abbreviation(first.at)}: {_what(first)}"))
    elements.chart(
        history_charts.changes(changed, axis, centre),
        "moves",
        "Changes by object over time, the likeliest cause on top.",
        axis.end,
    )
    rows = []
    for rank, it in enumerate(changed, start=1):
        when = f"{rank}. {readable.minute(it.at, zone)}" + (f" (wave {it.wave + 1})" if waves > 1 else "")
        rows.append({f"When, {zone.name}": when, "Who": _who(it), "What": _what(it)})
    elements.table("moves", rows[:_SHOWN])
    elements.download("moves", lambda: pd.DataFrame(rows))
    if waves > 1:
        st.caption(
            "A wave is a group of changes within 15 minutes of each other; the wave with the most changes is on top."
        )
    if len(changed) > _SHOWN:
        st.caption(f"{len(changed) - _SHOWN} more changes in the CSV and in `ackscope pipeline ask changed --json`.")


def _who(it: ChangedObject) -> str:
    return display_name(it.kind, it.vhost, it.name)


def _what(it: ChangedObject) -> str:
    """All changes and findings of an object in one text, because a phone has no room for more columns."""
    findings = [f"finding {one.rule} ({one.severity}){repeat_suffix(times)}" for one, times in it.first_findings()]
    return "; ".join(
        [*(describe_change(one) for one in it.shifts), *findings, *(what for _, what in describe_parts(it))]
    )
