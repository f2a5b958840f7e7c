"""Selected time ranges, and exports of a page."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from dashboard.format import export
from dashboard.format.timezones import Zone
from dashboard.frames import confirm_frames
from dashboard.frames.minute_frames import Axis
from tests.dashboard.answers import HOSTILE

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    """A duration in minutes."""
    return timedelta(minutes=count)


@pytest.mark.parametrize(
    ("first", "last", "start", "end"),
    [
        ("2026-03-01 12:04:12.3456", "2026-03-01 12:31:40", 4, 32),
        ("2026-03-01 12:31:40", "2026-03-01 12:04:12.3456", 4, 32),
        ("2026-03-01 12:04", "2026-03-01 12:31", 4, 31),
        ("2026-03-01 12:10:05", "2026-03-01 12:10:40", 8, 13),
    ],
)
def test_a_box_is_whole_minutes(first: str, last: str, start: int, end: int) -> None:
    """All minutes that it touches, drawn from either side, and at least five."""
    axis = Axis.between(NOON, NOON + minutes(60), 1)

    assert (NOON + minutes(start), NOON + minutes(end)) == confirm_frames.selected_range([first, last], axis)


def test_a_box_is_read_in_the_zone_of_its_chart() -> None:
    """The chart has local times; the result is UTC."""
    axis = Axis.between(NOON, NOON + minutes(60), 1, Zone("Asia/Kolkata"))
    first, last = pd.Timestamp("2026-03-01 17:34"), pd.Timestamp("2026-03-01 18:01")
    found = confirm_frames.selected_range([str(first), str(last)], axis)

    assert (NOON + minutes(4), NOON + minutes(31)) == found
    assert found == confirm_frames.selected_range([first.timestamp() * 1000, last.timestamp() * 1000], axis)
    assert UTC == found[0].tzinfo


def test_no_selection_is_no_range() -> None:
    """A click next to the chart does nothing."""
    assert confirm_frames.selected_range([], Axis.between(NOON, NOON + minutes(60), 1)) is None


@pytest.mark.parametrize(("length", "step", "points"), [(5, 1, 5), (180, 1, 180), (181, 2, 91), (1440, 10, 144)])
def test_step_depends_on_the_length_of_the_range(length: int, step: int, points: int) -> None:
    """In whole steps that cover the range."""
    axis = confirm_frames.axis_for(NOON, NOON + minutes(length))

    assert (step, points) == (axis.step, len(axis.points))
    assert axis.end >= NOON + minutes(length)


def test_csv() -> None:
    """Times in UTC, missing values empty, one cell per text whatever it contains."""
    rows = pd.DataFrame({"at": pd.DatetimeIndex([NOON]).tz_convert("Europe/Berlin"), "who": [HOSTILE], "x": [None]})
    lines = export.csv(rows).splitlines()

    assert "at,who,x" == lines[0]
    assert lines[1].startswith("2026-03-01T12:00:00Z,")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_no_name_becomes_a_formula(text: str) -> None:
    """A spreadsheet would run a queue name that looks like one."""
    rows = pd.DataFrame({"queue": [text, "orders"], "growing": [-1.5, 2.0]})

    assert f"'{text}" in export.csv(rows)
    assert export.csv(rows).endswith("orders,2.0\n")
    assert ",-1.5" in export.csv(rows)
    assert text == rows["queue"].iloc[0]


def test_file_names() -> None:
    """Page, content and time in UTC, so that they sort."""
    at = NOON.astimezone(Zone("Asia/Kolkata").info)

    assert "confirms-heat-2026-03-01T1200Z" == export.file_name("confirms", "heat", at)
