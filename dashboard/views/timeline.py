"""The page "Timeline": what happened, in order, with notes of the people who were there."""

from datetime import datetime, timedelta

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from dashboard.data import notes
from dashboard.format import export, readable
from dashboard.format.escape import visible
from dashboard.format.timezones import Zone
from dashboard.frames import timeline_entries
from dashboard.ui import elements, history_cache
from dashboard.ui.layout import PageContext, choose, moment, wanted
from dashboard.views.queues import findings_of

_SHOWN = 300
_SPANS = {"1h": 1, "6h": 6, "24h": 24, "7d": 7 * 24}
_MARKS = {
    timeline_entries.NOTE: "note",
    timeline_entries.BEGAN: "began",
    timeline_entries.ENDED: "ended",
    timeline_entries.SHIFT: "shift",
}


def render(place: PageContext) -> None:
    """A span of time (`?until=`, `?hours=`), what happened in it, a box for a note, and the export."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    now = SystemClock().now().utc
    start, end = _asked(now)
    moves = history_cache.moves(place.settings.rollups, place.cluster, _minute(start), _minute(end))
    if moves.problem is not None:
        elements.plain("moves-problem", f"The history cannot be read: {moves.problem}")
    elif not moves.watched:
        st.caption("No history of this time: findings of the present and notes are all there is.")
    written, problem = _notes(place, start, end)
    if problem is not None:
        elements.plain("notes-problem", problem)
    live = findings_of(place) if now - end < timedelta(minutes=2) else ()
    span = (start.timestamp(), end.timestamp())
    rows = timeline_entries.entries(moves.shifts, moves.told, live, written, *span)
    _show(rows, place.zone)
    cluster = place.cluster
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Save as Markdown",
            lambda: timeline_entries.markdown(cluster, rows, *span, zone=place.zone),
            file_name=f"{export.file_name('timeline', 'story', end)}.md",
            mime="text/markdown",
            key="save-markdown",
            on_click="ignore",
        )
        elements.save("entries", lambda: timeline_entries.table(rows))
    _write(place, end)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _asked(now: datetime) -> tuple[datetime, datetime]:
    """The span of the address, else the last six hours."""
    until, length = st.columns([2, 1], vertical_alignment="bottom")
    chosen = moment(until, "Until", "until", "until-choice", now)
    span = choose(length, "So far back", list(_SPANS), "hours", "hours-choice", first="6h")
    last = now if readable.parse_iso(wanted("until")) is None else chosen
    return last - timedelta(hours=_SPANS[span]), last


def _notes(place: PageContext, start: datetime, end: datetime) -> tuple[tuple[notes.Note, ...], str | None]:
    if place.settings.notes is None:
        return (), None
    return notes.read(place.settings.notes, place.cluster or "", start.timestamp(), end.timestamp())


def _show(rows: tuple[timeline_entries.TimelineEntry, ...], zone: Zone) -> None:
    if not rows:
        st.caption("Nothing is told of this time.")
        return
    shown = rows[-_SHOWN:]
    elements.table(
        "timeline",
        [
            {
                zone.name: readable.minute(entry.at, zone, "%m-%d %H:%M:%S"),
                "": f"{entry.severity} {_MARKS[entry.kind]}".strip(),
                "Who": entry.who,
                "What": visible(entry.what),
            }
            for entry in reversed(shown)
        ],
    )
    worst = [entry for entry in rows if entry.severity == Severity.CRITICAL.value]
    words = f"{len(rows):,} {'entry' if len(rows) == 1 else 'entries'}, the latest first"
    st.caption(f"{words}; {len(worst)} critical." + (f" The last {_SHOWN} are shown." if len(rows) > _SHOWN else ""))


def _write(place: PageContext, end: datetime) -> None:
    path = place.settings.notes
    st.subheader("Add a note", anchor=False)
    if path is None:
        st.caption("Notes are kept where the page was started with --notes FILE; without it nothing is written here.")
        return
    with st.form("note", clear_on_submit=True):
        text = st.text_area("What did you see, or do?", max_chars=notes.LONGEST, key="note-text")
        author = st.text_input("Your name", value=st.session_state.get("note-author-kept", ""), key="note-author")
        sent = st.form_submit_button("Keep it")
    if sent:
        now = SystemClock().now().wall
        moment = end.timestamp() if now - end.timestamp() > 120 else now
        note = notes.Note(cluster=place.cluster or "", at=moment, written=now, author=author.strip()[:80], text=text)
        problem = notes.add(path, note)
        if problem is not None:
            elements.plain("note-problem", f"Not kept: {problem}.")
            return
        st.session_state["note-author-kept"] = note.author
        st.rerun()
