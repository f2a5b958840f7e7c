"""Times in UTC and in the reader's zone, also on days with a clock change."""

from datetime import UTC as UTC_INFO
from datetime import datetime, timedelta

import pandas as pd
import pytest

from dashboard.charts import confirm_charts, minute_charts, theme
from dashboard.data.rollups import MinuteHistory
from dashboard.format import readable, timezones
from dashboard.format.timezones import UTC, Zone
from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import RANGES, Axis
from tests.dashboard.rollup_files import outcome_row

BERLIN, INDIA, SANTIAGO = Zone("Europe/Berlin"), Zone("Asia/Kolkata"), Zone("America/Santiago")
BACK = datetime(2026, 10, 25, 1, 0, tzinfo=UTC_INFO)
"""Clocks in Berlin go from 03:00 CEST back to 02:00 CET."""
FORTH = datetime(2026, 3, 29, 1, 0, tzinfo=UTC_INFO)
"""And from 02:00 CET on to 03:00 CEST."""


@pytest.mark.parametrize(
    ("asked", "browsers", "name"),
    [
        (None, "Europe/Berlin", "UTC"),
        ("utc", "Europe/Berlin", "UTC"),
        ("local", "Europe/Berlin", "Europe/Berlin"),
        ("local", None, "UTC"),
        ("local", "Etc/UTC", "UTC"),
        ("Asia/Kolkata", "Europe/Berlin", "Asia/Kolkata"),
        ("Europe", None, "UTC"),
        ("../../etc/passwd", None, "UTC"),
        ("<script>", None, "UTC"),
        ("x" * 5000, None, "UTC"),
        ("\0", None, "UTC"),
        ("", None, "UTC"),
    ],
)
def test_the_zone_of_the_address(asked: str | None, browsers: str | None, name: str) -> None:
    """UTC by default, and for an unknown zone."""
    assert name == timezones.selected(asked, browsers).name


def test_a_time_has_the_abbreviation_of_its_zone() -> None:
    """The one valid at that time; or the UTC offset."""
    winter, summer = datetime(2026, 1, 5, 23, 30, tzinfo=UTC_INFO), datetime(2026, 7, 5, 23, 30, tzinfo=UTC_INFO)

    assert "2026-01-06 00:30:00 CET" == readable.clock(winter.timestamp(), summer.timestamp(), BERLIN)
    assert "01:30:00 CEST" == readable.clock(summer.timestamp(), summer.timestamp(), BERLIN)
    assert "05:00:00 IST" == readable.clock(summer.timestamp(), summer.timestamp(), INDIA)
    assert "19:30:00 UTC-04" == readable.clock(summer.timestamp(), summer.timestamp(), SANTIAGO)
    assert "23:30:00 UTC" == readable.clock(summer.timestamp(), summer.timestamp())


def test_ambiguous_times_have_their_abbreviation() -> None:
    """If the zone is in the header, only ambiguous times repeat it."""
    moments = [BACK + timedelta(minutes=minutes) for minutes in (-90, -30, 30, 90)]

    assert ["01:30", "02:30 CEST", "02:30 CET", "03:30"] == [readable.minute(at, BERLIN, "%H:%M") for at in moments]
    assert ["02:30 CEST", "02:30 CET"] == [f"{BERLIN.local(at):%H:%M} {BERLIN.abbreviation(at)}" for at in moments[1:3]]


def test_a_range_names_its_zone_once_except_on_a_clock_change() -> None:
    """The date, too, appears once if it is one day."""
    hour = timedelta(hours=1)

    assert "2026-10-25 04:00 to 05:00 CET" == readable.between(BACK + 2 * hour, BACK + 3 * hour, BERLIN)
    assert "2026-10-25 02:00 CEST to 02:00 CET" == readable.between(BACK - hour, BACK, BERLIN)
    assert "2026-10-24 23:00 to 2026-10-25 00:00 UTC" == readable.between(BACK - 2 * hour, BACK - hour)


@pytest.mark.parametrize("moment", [BACK, FORTH], ids=["back", "forth"])
def test_local_times_convert_back_to_utc(moment: datetime) -> None:
    """An ambiguous time means its first occurrence."""
    for minutes in range(-180, 180, 10):
        at = moment + timedelta(minutes=minutes)
        shown = BERLIN.local(at).replace(tzinfo=None, fold=0)
        again = BERLIN.to_utc(shown)

        assert shown == BERLIN.local(again).replace(tzinfo=None, fold=0)
        assert again == at or timezones.is_ambiguous(BERLIN.local(at))


def test_a_skipped_time_is_shown_in_the_next_hour() -> None:
    """02:30 on the day on which clocks go from 02:00 to 03:00."""
    assert FORTH + timedelta(minutes=30) == BERLIN.to_utc(datetime.fromisoformat("2026-03-29T02:30"))


@pytest.mark.parametrize("moment", [BACK, FORTH], ids=["back", "forth"])
def test_all_hours_of_an_axis_have_the_same_length(moment: datetime) -> None:
    """On a clock change no minute is drawn twice or missing, and the axis title says so."""
    axis = Axis.until(moment + timedelta(hours=3), RANGES["6h"], BERLIN)
    shown = axis.points.tz_localize(None)

    assert axis.clock_change
    assert [pd.Timedelta(minutes=2)] == list(shown.diff().dropna().unique())
    assert moment - timedelta(hours=3) == axis.start
    assert theme.span_title(axis).startswith(
        f"{axis.zone} (fixed offset: clock change in this range), {axis.start.date()}"
    )


def test_a_figure_shows_local_times_and_names_the_zone() -> None:
    """Rows stay in UTC."""
    now = datetime(2026, 1, 5, 12, 0, tzinfo=UTC_INFO)
    rows = pd.DataFrame([outcome_row(now - timedelta(minutes=back), lost=back) for back in range(1, 16)])
    reported = {}
    for zone in (UTC, BERLIN):
        axis = Axis.until(now, RANGES["15m"], zone)
        sums = minute_frames.outcomes(rows, axis)
        figure = theme.time_figure(axis)
        reported[zone.name] = (
            sums["lost"].to_list(),
            f"{axis.points[0]:%H:%M}",
            figure.layout.xaxis.title.text,
            figure.layout.xaxis.hoverformat,
        )

    assert reported["UTC"][0] == reported["Europe/Berlin"][0] == [float(back) for back in range(15, 0, -1)]
    assert ("11:45", "UTC, 2026-01-05", "%H:%M UTC") == reported["UTC"][1:]
    assert ("12:45", "CET, 2026-01-05", "%H:%M CET") == reported["Europe/Berlin"][1:]


def test_the_browser_gets_local_times() -> None:
    """Plotly ignores the UTC offset of a time."""
    axis = Axis.until(datetime(2026, 7, 5, 12, 0, tzinfo=UTC_INFO), RANGES["15m"], INDIA)
    figure = minute_charts.redelivered(minute_frames.redelivered(MinuteHistory().redelivered, axis), axis)
    sent = figure.to_plotly_json()["layout"]

    assert "2026-07-05T17:15:00+05:30" == sent["xaxis"]["range"][0].isoformat()
    assert "2026-07-05T17:15:00+05:30" == sent["shapes"][0]["x0"].isoformat()


def test_over_midnight_both_dates_are_shown() -> None:
    """Midnight of the zone, not of UTC."""
    now = datetime(2026, 1, 5, 23, 30, tzinfo=UTC_INFO)

    assert "UTC, 2026-01-05" == theme.span_title(Axis.until(now, RANGES["1h"]))
    assert "CET, 2026-01-05 to 2026-01-06" == theme.span_title(Axis.until(now, RANGES["1h"], BERLIN))


def test_a_burst_has_its_minute_in_local_time_and_utc() -> None:
    """Local time to read, UTC to select it."""
    minute = datetime(2026, 7, 5, 23, 30, tzinfo=UTC_INFO)
    rows = pd.DataFrame({"size": [3.0], "interval": [0.1]}, index=pd.DatetimeIndex([minute]))
    figure = confirm_charts.burst_points({"classic": rows}, BERLIN)

    assert ["01:30 CEST", "2026-07-05T23:30"] == list(figure.data[0].customdata[0])
