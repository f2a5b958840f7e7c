from pathlib import Path

import pytest

from ackscope.findings import Severity, Subject
from ackscope.ranking import ChangePoint, FindingEpisode
from ackscope.reports import FindingReport
from dashboard.data import notes
from dashboard.data.notes import Note
from dashboard.format.timezones import Zone
from dashboard.frames import timeline_entries
from tests.dashboard.answers import HOSTILE

NOON = 1_767_268_800.0
"""2026-01-01 12:00 UTC."""


def note(minutes: float = 5, text: str = "restarted the worker", cluster: str = "shop") -> Note:
    """A note about a time so many minutes after noon."""
    return Note(cluster=cluster, at=NOON + 60 * minutes, written=NOON + 60 * minutes, author="Kim", text=text)


def finding(since: str = "2026-01-01T12:03:00Z") -> FindingReport:
    """A current finding."""
    return FindingReport(
        rule="stuck-consumer",
        severity=Severity.CRITICAL,
        subject=Subject(kind="queue", name="orders", vhost="/"),
        since=since,
        summary="it stands still",
        cause="",
        evidence=(),
        next_steps=(),
        runbook="",
    )


def reported(minutes: float = 3, ended: float | None = None, *, lasts: bool = True) -> FindingEpisode:
    """The same finding as an episode of the history."""
    end = None if ended is None else NOON + 60 * ended
    return FindingEpisode(
        NOON + 60 * minutes, end, "stuck-consumer", "critical", "queue", "/", "orders", "it stands still", lasts=lasts
    )


SHIFT = ChangePoint(NOON + 60, "queue", "/", "orders", "acked", 120.0, 0.0, 50.0, 30)


def test_entries_are_in_order_of_time() -> None:
    """A change point, the start of a finding, a note, and the end of the finding."""
    rows = timeline_entries.entries([SHIFT], [reported(3, 9, lasts=False)], [], [note()], NOON, NOON + 3600)

    assert ["shift", "began", "note", "ended"] == [entry.kind for entry in rows]
    assert "ack rate fell from 120/s to 0/s" == rows[0].what
    assert ("Kim", "restarted the worker") == (rows[2].who, rows[2].what)


def test_a_finding_in_the_history_is_listed_once() -> None:
    """With the exact time of the history; others with that of the exporter."""
    known = timeline_entries.entries([], [reported()], [finding()], [], NOON, NOON + 3600)
    fresh = timeline_entries.entries([], [], [finding()], [], NOON, NOON + 3600)

    assert (1, 1) == (len(known), len(fresh))
    assert ["stuck-consumer: it stands still"] * 2 == [known[0].what, fresh[0].what]


def test_entries_outside_the_range_are_excluded() -> None:
    """Also the end of a finding that started inside."""
    rows = timeline_entries.entries([], [reported(3, 90, lasts=False)], [], [note(-1)], NOON, NOON + 3600)

    assert ["began"] == [entry.kind for entry in rows]


def test_markdown_is_a_valid_table() -> None:
    """Markup in names and notes is escaped."""
    rows = timeline_entries.entries([], [], [], [note(text=f"{HOSTILE}\nsecond line")], NOON, NOON + 3600)
    text = timeline_entries.markdown(HOSTILE, rows, NOON, NOON + 3600)
    (row,) = [line for line in text.splitlines() if line.startswith("| 2026-01-01 12:05:00")]

    assert 4 == row.replace("\\|", "").count("|") - 1
    assert "\\<script\\>" in row
    assert "<script>" not in row
    assert "\u202e" not in text
    assert "From 2026-01-01 12:00:00 to 2026-01-01 13:00:00 UTC." in text


def test_markdown_has_local_times_and_utc() -> None:
    """Rows have as many cells as the header."""
    rows = timeline_entries.entries([SHIFT], [], [], [note()], NOON, NOON + 3600)
    text = timeline_entries.markdown("shop", rows, NOON, NOON + 3600, zone=Zone("Asia/Kolkata"))
    head, rule, *lines = [line for line in text.splitlines() if line.startswith("|")]

    assert "| UTC | Asia/Kolkata | What | Who | |" == head
    assert {head.count("|")} == {line.count("|") for line in (rule, *lines)}
    assert "| 2026-01-01 12:05:00 | 2026-01-01 17:35:00 IST | note | `Kim` | restarted the worker |" in lines
    assert "From 2026-01-01 12:00:00 to 2026-01-01 13:00:00 UTC." in text


def test_entries_are_saved_as_rows() -> None:
    """With times in UTC; no entries are no rows."""
    rows = timeline_entries.table(timeline_entries.entries([], [reported()], [], [note()], NOON, NOON + 3600))

    assert ["began", "note"] == list(rows["kind"])
    assert "2026-01-01 12:03:00+00:00" == str(rows["at"].iloc[0])
    assert 0 == len(timeline_entries.table(()))


def test_a_note_is_stored_and_read_again(tmp_path: Path) -> None:
    """In order of time, of this cluster and range only."""
    path = tmp_path / "new" / "notes.jsonl"
    for each in (note(9, "later"), note(5), note(5, cluster="depot"), note(500)):
        assert None is notes.add(path, each)
    found, problem = notes.read(path, "shop", NOON, NOON + 3600)

    assert (["restarted the worker", "later"], None) == ([each.text for each in found], problem)


def test_a_broken_line_does_not_affect_others(tmp_path: Path) -> None:
    """A killed writer left half a line; the next note starts on a new line."""
    path = tmp_path / "notes.jsonl"
    notes.add(path, note())
    path.write_bytes(path.read_bytes() + b'{"cluster":"sh')
    notes.add(path, note(6, "after"))
    found, problem = notes.read(path, "shop", NOON, NOON + 3600)

    assert ["restarted the worker", "after"] == [each.text for each in found]
    assert problem is not None
    assert "1 invalid lines skipped" in problem


@pytest.mark.parametrize(("text", "why"), [(" \n", "note is empty"), ("x" * 2001, "may have 2,000 characters")])
def test_an_invalid_note_is_not_stored(tmp_path: Path, text: str, why: str) -> None:
    """The reason is returned, and nothing is written."""
    problem = notes.add(tmp_path / "notes.jsonl", note(text=text))

    assert why in (problem or "")
    assert not (tmp_path / "notes.jsonl").exists()


def test_a_folder_cannot_store_notes(tmp_path: Path) -> None:
    """One line that names it."""
    assert f"{tmp_path}: cannot be written (is a directory)" == notes.add(tmp_path, note())
    assert ((), f"{tmp_path}: cannot be read (is a directory)") == notes.read(tmp_path, "shop", 0, NOON)
