"""What happened, in order: findings, shifts, notes; for the page and for the post-mortem. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from ackscope.findings import Finding
from ackscope.ranking import ChangePoint, FindingEpisode, describe_change, display_name
from dashboard.data.notes import Note
from dashboard.escape import visible
from dashboard.wording import parse_iso
from dashboard.zones import UTC, Zone

NOTE, BEGAN, ENDED, SHIFT = "note", "began", "ended", "shift"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened.

    Attributes:
        at: seconds since 1970.
        kind: `NOTE`, `BEGAN`, `ENDED` (of a finding) or `SHIFT` (of a level).
        who: the object, or the author of a note.
        what: in a sentence.
        severity: of a finding; "" else.
    """

    at: float
    kind: str
    who: str
    what: str
    severity: str = ""


def entries(
    shifts: Iterable[ChangePoint],
    told: Iterable[FindingEpisode],
    findings: Iterable[Finding],
    notes: Iterable[Note],
    start: float,
    end: float,
) -> tuple[Entry, ...]:
    """Everything from `start` to `end`, earliest first.

    Args:
        shifts: from history.
        told: from history: findings that began, and ended.
        findings: those of the present, which history may not know yet.
        notes: of people.
        start: seconds since 1970.
        end: seconds since 1970.
    """
    found: dict[tuple[object, ...], Entry] = {}
    for it in told:
        who = display_name(it.kind, it.vhost, it.name)
        began = f"{it.rule}: {it.summary}" if it.summary else it.rule
        note = " (it was there when the exporter began to look)" if it.found else ""
        found[BEGAN, it.rule, it.subject, round(it.began)] = Entry(it.began, BEGAN, who, began + note, it.severity)
        if it.ended is not None:
            found[ENDED, it.rule, it.subject, round(it.ended)] = Entry(it.ended, ENDED, who, it.rule, it.severity)
    known = {(it.rule, it.subject) for it in told if it.lasts}
    for finding in findings:
        subject = (finding.subject.kind, finding.subject.vhost or "", finding.subject.name)
        since = parse_iso(finding.since)
        if since is not None and (finding.rule, subject) not in known:
            what = f"{finding.rule}: {finding.summary}"
            found[BEGAN, finding.rule, subject] = Entry(
                since, BEGAN, display_name(*subject), what, finding.severity.value
            )
    for shift in shifts:
        found[SHIFT, shift.subject, shift.measure, shift.at] = Entry(
            shift.at, SHIFT, display_name(*shift.subject), describe_change(shift)
        )
    for number, written in enumerate(notes):
        found[NOTE, number] = Entry(written.at, NOTE, written.author or "somebody", written.text)
    inside = (entry for entry in found.values() if start <= entry.at <= end)
    return tuple(sorted(inside, key=lambda entry: (entry.at, entry.kind, entry.who)))


def markdown(cluster: str, rows: Sequence[Entry], start: float, end: float, where: str = "", zone: Zone = UTC) -> str:
    """The timeline as Markdown, for a post-mortem; names are set as code, so that they stay what they are.

    Its times are UTC, for people of all zones read it; those of another zone stand beside them.

    Args:
        cluster: its name.
        rows: as of `entries`.
        start: seconds since 1970.
        end: seconds since 1970.
        where: address of the view that it was made of; "" leaves it out.
        zone: of the times beside those in UTC.
    """
    local = zone != UTC
    lines = [f"# Timeline of {_code(cluster)}", "", f"From {_moment(start)} to {_moment(end)} UTC."]
    if where:
        lines.append(f"Made of: <{where}>")
    head, rule = (f"| UTC | {zone.name} |", "|---|---|") if local else ("| UTC |", "|---|")
    lines += ["", f"{head} What | Who | |", f"{rule}---|---|---|"]
    for entry in rows:
        kind = f"{entry.severity} {entry.kind}".strip()
        beside = f" {_moment(entry.at, zone)} {zone.short(entry.at)} |" if local else ""
        lines.append(f"| {_moment(entry.at)} |{beside} {kind} | {_code(entry.who)} | {_cell(entry.what)} |")
    if not rows:
        lines.append(f"| |{' |' if local else ''} nothing is told of this time | | |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Entry]) -> pd.DataFrame:
    """The entries as rows to be saved: `at`, `kind`, `severity`, `who`, `what`."""
    told = [(entry.kind, entry.severity, entry.who, entry.what) for entry in rows]
    found = pd.DataFrame(told, columns=["kind", "severity", "who", "what"])
    found.insert(0, "at", pd.to_datetime([entry.at for entry in rows], unit="s", utc=True))
    return found


def _moment(at: float, zone: Zone = UTC) -> str:
    return f"{zone.at(at):%Y-%m-%d %H:%M:%S}"


def _code(text: str) -> str:
    shown = visible(text).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`"


def _cell(text: str) -> str:
    """Words of people and of the broker in a table's cell: nothing in them is markup."""
    shown = " ".join(visible(line) for line in text.splitlines())
    for mark in "\\`*_{}[]<>#|":
        shown = shown.replace(mark, f"\\{mark}")
    return shown
