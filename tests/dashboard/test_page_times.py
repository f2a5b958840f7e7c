"""All pages in the reader's time zone, and the page "Confirms" with a selected time range."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.format import readable
from dashboard.format.timezones import Zone
from tests.dashboard import answers, history_files
from tests.dashboard.answers import Exporter
from tests.dashboard.broker_lists import shop
from tests.dashboard.page_text import errors, words
from tests.dashboard.rollup_files import this_minute

Open = Callable[..., AppTest]
FAR = Zone("Asia/Kathmandu")
"""Five hours and three quarters ahead of UTC, all the year."""


@pytest.mark.parametrize("path", ["", "confirms", "queues", "history", "timeline"])
def test_every_page_shows_times_in_the_zone_of_the_address(
    visit: Open, exporter: Exporter, rollups: Path, path: str
) -> None:
    """No time is in UTC then."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop()}
    history_files.write_story(rollups)
    page = visit(path, exporter.url, rollups, tz=FAR.name)
    said = words(page)

    assert [] == errors(page)
    assert re.search(r"UTC\+05:45|Asia/Kathmandu", said)
    # What the pipeline wrote in its own words is of UTC.
    assert [] == [line for line in said.splitlines() if re.search(r"UTC(?!\+)", line) and "(9 of 9)" not in line]


def test_times_in_the_address_are_utc_in_every_zone(visit: Open, exporter: Exporter, rollups: Path) -> None:
    """The input shows local time; the address stays."""
    history_files.write_story(rollups)
    at = this_minute() - timedelta(minutes=40)
    page = visit("history", exporter.url, rollups, at=f"{at:%Y-%m-%dT%H:%M}", tz=FAR.name)
    box = page.datetime_input[0]

    assert [] == errors(page)
    assert "Around (Asia/Kathmandu)" == box.label
    assert f"{FAR.local(at):%Y-%m-%d %H:%M}" == f"{box.value:%Y-%m-%d %H:%M}"
    box.set_value((FAR.local(at) + timedelta(minutes=10)).replace(tzinfo=None)).run()
    assert f"{at + timedelta(minutes=10):%Y-%m-%dT%H:%M}" == "".join(page.query_params["at"])


def test_the_address_selects_a_time_range_of_confirms(visit: Open, exporter: Exporter, rollups: Path) -> None:
    """The frame shows the range, and one click makes it live again."""
    start, end = this_minute() - timedelta(minutes=30), this_minute() - timedelta(minutes=10)
    reported = {"from": f"{start:%Y-%m-%dT%H:%M}", "to": f"{end:%Y-%m-%dT%H:%M}"}
    page = visit("confirms", exporter.url, rollups, range="6h", tz=FAR.name, **reported)

    assert [] == errors(page)
    assert f"{readable.between(start, end, FAR)}" == page.selectbox(key="range-choice").options[0]
    page.button(key="clear-range").click().run()
    assert [] == errors(page)
    assert "6h" == page.selectbox(key="range-choice").value
    assert {"range", "tz"} == set(page.query_params) - {"cluster"}


@pytest.mark.parametrize(("back", "said"), [((500, 400), "No data for"), ((240, 100), "Data for this range starts at")])
def test_missing_history_is_reported(
    visit: Open, exporter: Exporter, rollups: Path, back: tuple[int, int], said: str
) -> None:
    """A link may outlive the minutes that it leads to."""
    start, end = (f"{this_minute() - timedelta(minutes=it):%Y-%m-%dT%H:%M}" for it in back)
    page = visit("confirms", exporter.url, rollups, **{"from": start, "to": end})

    assert [] == errors(page)
    assert said in words(page)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("yesterday", "2026-03-01T12:00"),
        ("2026-03-01T12:00", "2026-03-01T12:00"),
        ("2999-01-01T00:00", "2999-01-02T00:00"),
        ("2026-03-01T12:00", ""),
    ],
)
def test_an_invalid_time_range_is_ignored(
    visit: Open, exporter: Exporter, rollups: Path, first: str, last: str
) -> None:
    """The page shows the live range."""
    page = visit("confirms", exporter.url, rollups, **{"from": first, "to": last})

    assert [] == errors(page)
    assert "1h" == page.selectbox(key="range-choice").value
