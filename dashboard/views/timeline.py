"""The page "Timeline": findings as bars, change points and notes as marks, all in order of time, with export."""

from datetime import datetime, timedelta
from pathlib import Path

import streamlit as st

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from ackscope.triage import MAX_NAME
from dashboard.charts import gantt_chart
from dashboard.data import notes
from dashboard.format import export, readable
from dashboard.format.escape import visible
from dashboard.format.timeline_html import TimelineReport, timeline_html
from dashboard.format.timezones import Zone
from dashboard.frames import gantt_rows, timeline_entries
from dashboard.frames.gantt_rows import GanttRow
from dashboard.frames.minute_frames import Axis
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext

_FIRST_ENTRIES, _MOST_ENTRIES = 50, 300
# Rows of the chart that leave the list on the same screen, and all that a browser draws at once.
_FIRST_ROWS, _MOST_ROWS = 10, 60
_PROBLEM = "note-problem-text"
_ALL_ROWS, _ALL_ENTRIES = "all-timeline-rows", "all-timeline-entries"
_MARKS = {
    timeline_entries.NOTE: "note",
    timeline_entries.BEGAN: "began",
    timeline_entries.ENDED: "ended",
    timeline_entries.SHIFT: "level changed",
}


def render(context: PageContext) -> None:
    """The entries of the time range, downloads, and a form for a note."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    now = SystemClock().now().utc
    start, end = context.span.at(now)
    # The last minute is not complete yet, but what happened in it belongs to the story.
    end = now if context.span.live else end
    found = cache.changes(context.settings.rollups, context.cluster, _minute(start), _minute(end))
    if found.problem is not None:
        elements.plain("moves-problem", f"Cannot read the history: {found.problem}")
    elif not found.hours_with_data:
        st.caption("No history for this range. Showing current findings and notes only.")
    written, problem = _notes(context, start, end)
    if problem is not None:
        elements.plain("notes-problem", problem)
    recent = now - end < timedelta(minutes=2)
    current = cache.current_findings(context.settings.exporter, context.cluster) if recent else ()
    span = (start.timestamp(), end.timestamp())
    rows = timeline_entries.entries(found.shifts, found.episodes, current, written, *span)
    bars = gantt_rows.gantt_rows(found.episodes, current, *span)
    _chart(bars, rows, Axis.between(start, end, 1, context.zone))
    cluster = context.cluster
    remark = "" if found.hours_with_data else "There is no history of this time: only current findings and notes."
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Save as HTML",
            lambda: timeline_html(TimelineReport(cluster, *span, bars, rows, context.zone, remark)),
            file_name=f"{export.file_name('timeline', 'story', end)}.html",
            mime="text/html",
            key="save-html",
            on_click="ignore",
            type="primary",
            help="One file for the post-mortem, without scripts: open it in any browser, send it, print it.",
        )
        st.download_button(
            "Save as Markdown",
            lambda: timeline_entries.markdown(cluster, rows, *span, zone=context.zone),
            file_name=f"{export.file_name('timeline', 'story', end)}.md",
            mime="text/markdown",
            key="save-markdown",
            on_click="ignore",
        )
        elements.download("entries", lambda: timeline_entries.table(rows))
        _write(context, end)
    problem = st.session_state.get(_PROBLEM)
    if problem is not None:
        elements.plain("note-problem", f"Not saved: {problem}.")
    _show(rows, context.zone)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _notes(context: PageContext, start: datetime, end: datetime) -> tuple[tuple[notes.Note, ...], str | None]:
    if context.settings.notes is None:
        return (), None
    return notes.read(context.settings.notes, context.cluster or "", start.timestamp(), end.timestamp())


def _chart(bars: tuple[GanttRow, ...], rows: tuple[timeline_entries.TimelineEntry, ...], axis: Axis) -> None:
    """Findings as bars, notes and changes of a level as marks."""
    if not bars and not rows:
        return
    if not bars:
        st.caption("No findings in this range.")
    every = gantt_rows.condensed(bars)
    open_rows = len(every) > _FIRST_ROWS and st.session_state.get(_ALL_ROWS, False)
    shown = gantt_rows.worst(every, _MOST_ROWS if open_rows else _FIRST_ROWS)
    figure = gantt_chart.gantt(shown, rows, axis)
    with st.container(key="plain-title-gantt", gap="small"):
        elements.chart(figure, "gantt", "Findings from beginning to end, by severity, with notes as marks.", axis.end)
    if len(every) > _FIRST_ROWS:
        st.toggle(f"Show all {len(every)} rows; the {_FIRST_ROWS} most severe are shown first", key=_ALL_ROWS)
    if len(every) > len(shown) and open_rows:
        st.caption(f"{len(every) - len(shown)} more rows of findings in the HTML file; the most severe are shown.")


def _show(rows: tuple[timeline_entries.TimelineEntry, ...], zone: Zone) -> None:
    if not rows:
        st.caption("No entries in this range.")
        return
    shown = rows[-(_MOST_ENTRIES if st.session_state.get(_ALL_ENTRIES, False) else _FIRST_ENTRIES) :]
    critical = [entry for entry in rows if entry.severity == Severity.CRITICAL.value]
    words = f"{len(rows):,} {'entry' if len(rows) == 1 else 'entries'}, latest first; {len(critical)} critical."
    st.caption(words + (f" Showing the last {len(shown)}." if len(rows) > len(shown) else ""))
    elements.table(
        "timeline",
        [
            {
                zone.name: readable.minute(entry.at, zone, "%m-%d %H:%M:%S"),
                "": f"{entry.severity} {_MARKS[entry.kind]}".strip(),
                # One column, because a phone has no room for two.
                "What": visible(_what(entry)),
            }
            for entry in reversed(shown)
        ],
    )
    if len(rows) > _FIRST_ENTRIES:
        st.toggle(f"Show {min(len(rows), _MOST_ENTRIES)} entries", key=_ALL_ENTRIES)


def _what(entry: timeline_entries.TimelineEntry) -> str:
    """What happened, and to whom unless the sentence says so."""
    return entry.what if entry.who.lower() in entry.what.lower() else f"{entry.who}: {entry.what}"


def _write(context: PageContext, end: datetime) -> None:
    path = context.settings.notes
    if path is None:
        st.caption("Notes are disabled. Start the dashboard with --notes FILE to store notes.")
        return
    with st.popover("Add a note", icon=":material/edit_note:"), st.form("note", border=False):
        st.text_area("What did you observe or do?", max_chars=notes.MAX_CHARACTERS, key="note-text")
        author = st.session_state.get("author-of-notes", "")
        st.text_input("Your name", value=author, max_chars=MAX_NAME, key="note-author")
        st.form_submit_button("Save note", on_click=_save, args=(path, context.cluster or "", end))


def _save(path: Path, cluster: str, end: datetime) -> None:
    """Store the note; the form keeps its text until that has worked."""
    now = SystemClock().now().wall
    moment = end.timestamp() if now - end.timestamp() > 120 else now
    text, author = st.session_state["note-text"], st.session_state["note-author"].strip()[:MAX_NAME]
    problem = notes.add(path, notes.Note(cluster=cluster, at=moment, written=now, author=author, text=text))
    st.session_state[_PROBLEM] = problem
    if problem is None:
        st.session_state["author-of-notes"] = author
        st.session_state["note-text"] = ""
