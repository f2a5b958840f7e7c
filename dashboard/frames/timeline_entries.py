"""The timeline: findings, change points and notes in order of time, for the page and as Markdown. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from ackscope.ranking import ChangePoint, FindingEpisode, describe_change, display_name
from ackscope.reports import FindingReport
from dashboard.data.notes import Note
from dashboard.format.escape import visible
from dashboard.format.readable import parse_iso
from dashboard.format.timezones import UTC, Zone

NOTE, BEGAN, ENDED, SHIFT = "note", "began", "ended", "shift"


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline.

    Attributes:
        at: seconds since 1970.
        kind: `NOTE`, `BEGAN`, `ENDED` (of a finding) or `SHIFT` (change of a level).
        who: the object, or the author of a note.
        what: one sentence.
        severity: severity of a finding; "" for other entries.
    """

    at: float
    kind: str
    who: str
    what: str
    severity: str = ""


def entries(
    shifts: Iterable[ChangePoint],
    episodes: Iterable[FindingEpisode],
    findings: Iterable[FindingReport],
    notes: Iterable[Note],
    start: float,
    end: float,
) -> tuple[TimelineEntry, ...]:
    """All entries from `start` to `end`, earliest first.

    Args:
        shifts: change points of the history.
        episodes: findings of the history, with start and end.
        findings: current findings, which may not be in the history yet.
        notes: notes of people.
        start: seconds since 1970.
        end: seconds since 1970.
    """
    found: dict[tuple[object, ...], TimelineEntry] = {}
    for it in episodes:
        who = display_name(it.kind, it.vhost, it.name)
        began = f"{it.rule}: {it.summary}" if it.summary else it.rule
        note = " (already present when the exporter started)" if it.found else ""
        found[BEGAN, it.rule, it.subject, round(it.began)] = TimelineEntry(
            it.began, BEGAN, who, began + note, it.severity
        )
        if it.ended is not None:
            found[ENDED, it.rule, it.subject, round(it.ended)] = TimelineEntry(
                it.ended, ENDED, who, it.rule, it.severity
            )
    known = {(it.rule, it.subject) for it in episodes if it.lasts}
    for finding in findings:
        subject = (finding.subject.kind, finding.subject.vhost or "", finding.subject.name)
        since = parse_iso(finding.since)
        if since is not None and (finding.rule, subject) not in known:
            what = f"{finding.rule}: {finding.summary}"
            found[BEGAN, finding.rule, subject] = TimelineEntry(
                since, BEGAN, display_name(*subject), what, finding.severity.value
            )
    for shift in shifts:
        found[SHIFT, shift.subject, shift.measure, shift.at] = TimelineEntry(
            shift.at, SHIFT, display_name(*shift.subject), describe_change(shift)
        )
    for number, written in enumerate(notes):
        found[NOTE, number] = TimelineEntry(written.at, NOTE, written.author or "somebody", written.text)
    inside = (entry for entry in found.values() if start <= entry.at <= end)
    return tuple(sorted(inside, key=lambda entry: (entry.at, entry.kind, entry.who)))


def markdown(
    cluster: str, rows: Sequence[TimelineEntry], start: float, end: float, where: str = "", zone: Zone = UTC
) -> str:
    """The timeline as Markdown, for a post-mortem; names are code spans, so that they are shown literally.

    Times are in UTC; a second column has the times in another zone.

    Args:
        cluster: name of the cluster.
        rows: result of `entries`.
        start: seconds since 1970.
        end: seconds since 1970.
        where: URL of the view; "" omits it.
        zone: zone of the second column; UTC omits it.
    """
    local = zone != UTC
    lines = [f"# Timeline of {_code(cluster)}", "", f"From {_moment(start)} to {_moment(end)} UTC."]
    if where:
        lines.append(f"Source: <{where}>")
    head, rule = (f"| UTC | {zone.name} |", "|---|---|") if local else ("| UTC |", "|---|")
    lines += ["", f"{head} What | Who | |", f"{rule}---|---|---|"]
    for entry in rows:
        kind = f"{entry.severity} {entry.kind}".strip()
        local_time = f" {_moment(entry.at, zone)} {zone.abbreviation(entry.at)} |" if local else ""
        lines.append(f"| {_moment(entry.at)} |{local_time} {kind} | {_code(entry.who)} | {_cell(entry.what)} |")
    if not rows:
        lines.append(f"| |{' |' if local else ''} no entries | | |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[TimelineEntry]) -> pd.DataFrame:
    """The entries as rows for CSV: `at`, `kind`, `severity`, `who`, `what`."""
    values = [(entry.kind, entry.severity, entry.who, entry.what) for entry in rows]
    found = pd.DataFrame(values, columns=["kind", "severity", "who", "what"])
    found.insert(0, "at", pd.to_datetime([entry.at for entry in rows], unit="s", utc=True))
    return found


def _moment(at: float, zone: Zone = UTC) -> str:
    return f"{zone.local(at):%Y-%m-%d %H:%M:%S}"


def _code(text: str) -> str:
    shown = visible(text).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`"


def _cell(text: str) -> str:
    """Foreign text in a table cell, with all markup escaped."""
    shown = " ".join(visible(line) for line in text.splitlines())
    for mark in "\\`*_{}[]<>#|":
        shown = shown.replace(mark, f"\\{mark}")
    return shown
