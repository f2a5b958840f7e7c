"""Changes around a time: a ranked list of objects, each with its curves before and after the change."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from ackscope.measures import measure
from ackscope.ranking import ChangedObject, describe_change, describe_parts, display_name, rank_changes, repeat_suffix
from dashboard.charts import history_charts
from dashboard.data.history_answers import ChangesInRange
from dashboard.format import readable
from dashboard.format.escape import literal, visible
from dashboard.format.timezones import Zone
from dashboard.frames import history_frames
from dashboard.frames.history_frames import ChangeCurve
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext, select, time_input
from dashboard.views.history import section

_AROUND = {"15m": 900.0, "1h": 3600.0, "3h": 3 * 3600.0, "12h": 12 * 3600.0, "24h": 24 * 3600.0}
_WORDS = {"15m": "15 minutes", "1h": "1 hour", "3h": "3 hours", "12h": "12 hours", "24h": "24 hours"}
_SHOWN, _CARDS, _LINES = 20, 8, 4
_CURVE_SECONDS = 3600.0
_BY_SIZE, _BY_CAUSE = "size", "cause"
_ORDERS = {_BY_SIZE: "Largest and most certain first", _BY_CAUSE: "Likeliest cause first"}


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the list is about: the cluster and the time range."""

    context: PageContext
    cluster: str
    axis: Axis


def render(context: PageContext, cluster: str) -> None:
    """Inputs for the time, and the ranked changes around it."""
    section.heading(
        "What changed",
        "Lasting changes of a level, and findings that started. The largest and most certain change is on top: its "
        "size is compared with the scatter before it. By likeliest cause, the earliest is on top, because a cause "
        "changes before its effects; changes within 2 minutes of each other are ordered by size.",
    )
    now = SystemClock().now().utc.replace(second=0, microsecond=0)
    centre, around = _time_and_width(now)
    start, end = centre - timedelta(seconds=around), min(centre + timedelta(seconds=around), now)
    found = cache.changes(context.settings.rollups, cluster, start, end)
    if _has_data(found, start, end, context.zone):
        changed = rank_changes(found.shifts, found.episodes, centre.timestamp(), around)
        _show(changed, _Shown(context, cluster, Axis.between(start, end, 1, context.zone)))


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


def _show(changed: tuple[ChangedObject, ...], shown: _Shown) -> None:
    axis, zone = shown.axis, shown.context.zone
    if not changed:
        st.markdown(f"No changes from {readable.between(axis.start, axis.end, zone)}, and no finding started.")
        return
    first, waves = changed[0], max(it.wave for it in changed) + 1
    began = f"{zone.local(first.at):%Y-%m-%d %H:%M}"
    with st.container(key="summary-moved"):
        st.text(visible(f"First change: {_who(first)}, {began} {zone.abbreviation(first.at)}: {_what(first)}"))
    order = select(st.container(width=320), "Order", list(_ORDERS), "order", "order-choice", words=_ORDERS.__getitem__)
    ordered = changed if order == _BY_CAUSE else history_frames.rank_by_size(changed)
    objects = [(it.kind, it.vhost, it.name) for it in ordered[:_CARDS]]
    objects += [part.subject for it in ordered[:_CARDS] for part in it.parts]
    settings = shown.context.settings
    found = cache.minutes_of(settings.rollups, shown.cluster, tuple(dict.fromkeys(objects)), *axis.utc)
    if found.problem is not None:
        elements.plain("curves-problem", f"Cannot read the curves: {found.problem}")
    for rank, it in enumerate(ordered[:_CARDS], start=1):
        with st.container(border=True, key=f"change-{rank}"):
            _card(rank, it, history_frames.curves(it, found.rows), shown)
    rows = []
    for rank, it in enumerate(ordered, start=1):
        when = f"{rank}. {readable.minute(it.at, zone)}" + (f" (wave {it.wave + 1})" if waves > 1 else "")
        rows.append({f"When, {zone.name}": when, "Who": _who(it), "What": _what(it)})
    if len(rows) > _CARDS:
        elements.table("moves", rows[_CARDS:_SHOWN])
    elements.download("moves", lambda: pd.DataFrame(rows))
    if waves > 1:
        st.caption("A wave is a group of changes within 15 minutes of each other.")
    if len(changed) > _SHOWN:
        st.caption(f"{len(changed) - _SHOWN} more changes in the CSV and in `ackscope pipeline ask changed --json`.")


def _card(rank: int, it: ChangedObject, curves: list[ChangeCurve], shown: _Shown) -> None:
    """One object: what changed about it, from which level to which, when, how unusual; and its curves beside that."""
    zone = shown.context.zone
    text, picture = st.columns([2, 3], vertical_alignment="center")
    with text, st.container(gap="xsmall", key=f"plain-change-{rank}"):
        st.markdown(f"**{rank}.** {literal(_who(it))}")
        st.caption(f"{readable.minute(it.at, zone)} {zone.abbreviation(it.at)}")
        levels = sorted(it.shifts, key=lambda one: -abs(one.score))[:_LINES]
        parts = [what for _, what in describe_parts(it)]
        for line in (*map(history_frames.shift_text, levels), *parts):
            st.text(visible(line))
        for finding, times in it.first_findings():
            known = finding.severity in list(Severity)
            style = elements.SEVERITIES[Severity(finding.severity)] if known else elements.UNKNOWN
            elements.badge(style, f"{style.word} finding began")
            summary = f": {finding.summary}" if finding.summary else ""
            st.text(visible(f"{finding.rule}{repeat_suffix(times)}{summary}"))
    with picture:
        if not curves:
            st.caption("No minutes of this object in the history: no curve.")
            return
        # An hour on both sides of the change is enough to compare, and as much as the range has.
        start = max(shown.axis.start, zone.local(it.at - _CURVE_SECONDS))
        end = min(shown.axis.end, zone.local(it.at + _CURVE_SECONDS))
        figure = history_charts.before_and_after(curves, Axis.between(start, end, 1, zone))
        names = " and ".join(measure(one.measure).words for one in curves)
        with st.container(key=f"plain-title-change-{rank}", gap="small"):
            elements.chart(figure, f"change-{rank}", f"{names} before and after the change.", end)


def _who(it: ChangedObject) -> str:
    return display_name(it.kind, it.vhost, it.name)


def _what(it: ChangedObject) -> str:
    """All changes and findings of an object in one text, because a phone has no room for more columns."""
    findings = [f"finding {one.rule} ({one.severity}){repeat_suffix(times)}" for one, times in it.first_findings()]
    return "; ".join(
        [*(describe_change(one) for one in it.shifts), *findings, *(what for _, what in describe_parts(it))]
    )
