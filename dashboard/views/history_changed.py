"""What changed around a moment: who moved first, and by how much."""

from datetime import datetime, timedelta

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.ranking import ChangedObject, describe_change, describe_parts, display_name, rank_changes, repeat_suffix
from dashboard import history_cache, history_charts, wording
from dashboard.data.answers import Moves
from dashboard.escape import visible
from dashboard.frames import Axis
from dashboard.shell import Place, choose, moment
from dashboard.views import history_parts, parts
from dashboard.zones import Zone

_AROUND = {"15m": 900.0, "1h": 3600.0, "3h": 3 * 3600.0, "12h": 12 * 3600.0, "24h": 24 * 3600.0}
_WORDS = {"15m": "15 minutes", "1h": "1 hour", "3h": "3 hours", "12h": "12 hours", "24h": "24 hours"}
_SHOWN = 20


def render(place: Place, cluster: str) -> None:
    """The moment, who moved around it, and when."""
    history_parts.heading(
        "What changed",
        "Shifts of the level of a measure, and findings that began. Who moved first is told first: a cause "
        "moves before what follows from it. Moves within two minutes of each other are told by their size.",
    )
    now = SystemClock().now().utc.replace(second=0, microsecond=0)
    middle, around = _asked(now)
    start, end = middle - timedelta(seconds=around), min(middle + timedelta(seconds=around), now)
    found = history_cache.moves(place.settings.rollups, cluster, start, end)
    if _told(found, start, end, place.zone):
        moved = rank_changes(found.shifts, found.told, middle.timestamp(), around)
        _show(moved, Axis.between(start, end, 1, place.zone), middle, place.zone)


def _asked(now: datetime) -> tuple[datetime, float]:
    """The moment of the address (`?at=`), else now; and how far around it (`?around=`)."""
    at, around = st.columns([2, 1], vertical_alignment="bottom")
    chosen = moment(at, "Around", "at", "moment-choice", now)
    span = choose(
        around,
        "So far before and after",
        list(_AROUND),
        "around",
        "around-choice",
        first="3h",
        words=_WORDS.__getitem__,
    )
    return chosen, _AROUND[span]


def _told(found: Moves, start: datetime, end: datetime, zone: Zone) -> bool:
    """Whether there is anything to rank; where there is not, why."""
    if found.problem is not None:
        parts.plain("moves-problem", f"The history cannot be read: {found.problem}")
        return False
    if not found.looked:
        st.caption("Shifts were not looked for yet: the pipeline does so every hour.")
        return False
    if found.watched == 0:
        st.caption(f"Cannot tell: there is no data from {wording.between(start, end, zone)}.")
        return False
    return True


def _show(moved: tuple[ChangedObject, ...], axis: Axis, middle: datetime, zone: Zone) -> None:
    if not moved:
        st.markdown(f"Nothing moved from {wording.between(axis.start, axis.end, zone)}, and no finding began.")
        return
    first, waves = moved[0], max(it.wave for it in moved) + 1
    began = f"{zone.at(first.at):%Y-%m-%d %H:%M}"
    with st.container(key="summary-moved"):
        st.text(visible(f"First to move: {_who(first)}, {began} {zone.short(first.at)}: {_what(first)}"))
    parts.chart(
        history_charts.moves(moved, axis, middle), "moves", "Who moved when, the likeliest cause on top.", axis.end
    )
    rows = []
    for place, it in enumerate(moved, start=1):
        when = f"{place}. {wording.minute(it.at, zone)}" + (f" (wave {it.wave + 1})" if waves > 1 else "")
        rows.append({f"When, {zone.name}": when, "Who": _who(it), "What": _what(it)})
    parts.table("moves", rows[:_SHOWN])
    parts.save("moves", lambda: pd.DataFrame(rows))
    if waves > 1:
        st.caption("A wave is what moved within 15 minutes of each other; the one in which most moved comes first.")
    if len(moved) > _SHOWN:
        st.caption(f"{len(moved) - _SHOWN} more moved; the CSV has them, and `ackscope pipeline ask changed --json`.")


def _who(it: ChangedObject) -> str:
    return display_name(it.kind, it.vhost, it.name)


def _what(it: ChangedObject) -> str:
    """Every shift, and what diagnosis said of it: on a phone there is no room for a column more."""
    told = [f"diagnosis told {one.rule} ({one.severity}){repeat_suffix(times)}" for one, times in it.first_findings()]
    return "; ".join([*(describe_change(one) for one in it.shifts), *told, *(what for _, what in describe_parts(it))])
