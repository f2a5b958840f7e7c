"""The page "Timeline": what happened, in order, with notes of the people who were there."""

from datetime import datetime, timedelta

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from dashboard import export, history_cache, timeline, wording
from dashboard.data import notes
from dashboard.escape import visible
from dashboard.shell import Place, choose, moment, wanted
from dashboard.views import parts
from dashboard.views.queues import findings_of
from dashboard.zones import Zone

_SHOWN = 300
_SPANS = {"1h": 1, "6h": 6, "24h": 24, "7d": 7 * 24}
_MARKS = {timeline.NOTE: "note", timeline.BEGAN: "began", timeline.ENDED: "ended", timeline.SHIFT: "shift"}


def render(place: Place) -> None:
    """A span of time (`?until=`, `?hours=`), what happened in it, a box for a note, and the export."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    now = SystemClock().now().utc
    start, end = _asked(now)
    moves = history_cache.moves(place.settings.rollups, place.cluster, _minute(start), _minute(end))
    if moves.problem is not None:
        parts.plain("moves-problem", f"The history cannot be read: {moves.problem}")
    elif not moves.watched:
        st.caption("No history of this time: findings of the present and notes are all there is.")
    written, problem = _notes(place, start, end)
    if problem is not None:
        parts.plain("notes-problem", problem)
    live = findings_of(place) if now - end < timedelta(minutes=2) else ()
    span = (start.timestamp(), end.timestamp())
    rows = timeline.entries(moves.shifts, moves.told, live, written, *span)
    _show(rows, place.zone)
    cluster = place.cluster
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Save as Markdown",
            lambda: timeline.markdown(cluster, rows, *span, zone=place.zone),
            file_name=f"{export.file_name('timeline', 'story', end)}.md",
            mime="text/markdown",
            key="save-markdown",
            on_click="ignore",
        )
        parts.save("entries", lambda: timeline.table(rows))
    _write(place, end)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _asked(now: datetime) -> tuple[datetime, datetime]:
    """The span of the address, else the last six hours."""
    until, length = st.columns([2, 1], vertical_alignment="bottom")
    chosen = moment(until, "Until", "until", "until-choice", now)
    span = choose(length, "So far back", list(_SPANS), "hours", "hours-choice", first="6h")
    last = now if wording.parse_iso(wanted("until")) is None else chosen
    return last - timedelta(hours=_SPANS[span]), last


def _notes(place: Place, start: datetime, end: datetime) -> tuple[tuple[notes.Note, ...], str | None]:
    if place.settings.notes is None:
        return (), None
    return notes.read(place.settings.notes, place.cluster or "", start.timestamp(), end.timestamp())


def _show(rows: tuple[timeline.Entry, ...], zone: Zone) -> None:
    if not rows:
        st.caption("Nothing is told of this time.")
        return
    shown = rows[-_SHOWN:]
    parts.table(
        "timeline",
        [
            {
                zone.name: wording.minute(entry.at, zone, "%m-%d %H:%M:%S"),
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


def _write(place: Place, end: datetime) -> None:
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
            parts.plain("note-problem", f"Not kept: {problem}.")
            return
        st.session_state["note-author-kept"] = note.author
        st.rerun()
