"""Bands of what is usual: by hour of the week, by hour of the day, or not yet; an incident moves none of them."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope import manifest
from ackscope.tables import BASELINES, HOURS, QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from pipeline import downsample
from pipeline.analysis.bands import SCOPES, bands
from pipeline.analysis.noise import noise
from pipeline.analysis.refresh import bands as make_bands
from pipeline.analysis.refresh import due, refresh
from pipeline.analysis.series import FAMILIES, to_long
from pipeline.answers import answers_file
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups
from tests.spark.series_made import CLUSTER, FIRST, START, counts, put, queue

_DAYS = 56
_MONDAYS = np.arange(_DAYS) % 7 == 0


def _days(*values: float) -> np.ndarray:
    """One series, whose last days have these values."""
    return np.array([[np.nan] * (_DAYS - len(values)) + list(values)])


def test_three_weeks_make_a_band_of_the_week() -> None:
    """Mondays that are busier than other days have a band of their own."""
    values = np.where(_MONDAYS, 50.0, 5.0)[None, :]
    found = bands(values, _MONDAYS, noise("published"), None, None)

    assert "hour-of-week" == SCOPES[found.scope[0]]
    assert 8 == found.values[0]
    assert found.low[0] < 50 < found.high[0]
    assert found.low[0] > 5


def test_three_days_make_a_band_of_the_day() -> None:
    """With less than three weeks, all days count together."""
    found = bands(_days(5.0, 5.2, 5.1, 4.9), _MONDAYS, noise("published"), None, None)

    assert ("hour-of-day", 4) == (SCOPES[found.scope[0]], found.values[0])
    assert found.low[0] < 5.05 < found.high[0]


def test_two_days_make_none() -> None:
    """Too little history is reported as such, without numbers."""
    found = bands(_days(5.0, 5.2), _MONDAYS, noise("published"), None, None)

    assert ("not-yet", 2) == (SCOPES[found.scope[0]], found.values[0])
    assert np.isnan([found.low[0], found.middle[0], found.high[0]]).all()


@pytest.mark.parametrize(("measure", "level"), [("ready", 0.0), ("consumers", 3.0), ("confirm_p50", 0.004)])
def test_a_constant_series_has_a_band(measure, level) -> None:
    """A series that never moved has some room, on both sides where there is any."""
    found = bands(np.full((1, _DAYS), level), _MONDAYS, noise(measure), None, None)

    assert found.middle[0] == pytest.approx(level, abs=1e-9)
    assert found.high[0] > level
    assert found.low[0] < level or level == 0


def test_an_incident_hardly_widens_a_band() -> None:
    """One terrible Monday of eight moves the band by less than its own width."""
    dice = np.random.default_rng(2)
    values = dice.normal(10, 0.5, (1, _DAYS))
    before = bands(values, _MONDAYS, noise("published"), None, None)
    values[0, 21] = 500.0
    after = bands(values, _MONDAYS, noise("published"), None, None)

    assert after.high[0] < before.high[0] + (before.high[0] - before.low[0])
    assert after.high[0] < 50


def test_what_peaks_within_the_hour_is_usual() -> None:
    """A backlog that is there for minutes of every hour lies within the band, though the hour ends without it."""
    last, most = np.zeros((1, _DAYS)), np.full((1, _DAYS), 400.0)
    found = bands(last, _MONDAYS, noise("ready"), None, most)

    assert 0.0 == found.middle[0]
    assert found.high[0] > 400


def _hours(days: int, name: str = "orders", rate: int = 7200) -> list[dict]:
    """Rows of `queues_1h` whose minutes have expired."""
    table = HOURS[QUEUES_1M.name]
    reasons = {"samples": 120, "minutes": 60, "published": rate, "delivered": rate, "acked": rate, "redelivered": 0}
    levels = {"messages_ready_max": 5, "messages_ready_last": 0, "consumers_min": 2, "consumers_last": 2}
    return [
        dict.fromkeys(table.names)
        | reasons
        | levels
        | {"hour": hour, "vhost": "/", "queue": name, "first_minute": hour, "last_minute": hour}
        for hour in (START + timedelta(hours=number) for number in range(days * 24))
    ]


def test_hours_to_baselines(spark, tmp_path) -> None:
    """Bands for every hour of the week, one file each, and what is not yet known; a second look changes nothing."""
    rollups = Rollups(tmp_path)
    table = HOURS[QUEUES_1M.name]
    young = [row for row in _hours(23, "young") if row["hour"] >= START + timedelta(days=21)]
    rows = _hours(23) + young
    with rollups.writer_lock():
        transaction = rollups.transaction(CLUSTER)
        transaction.replace_hours(
            table, range(FIRST, FIRST + 23 * 24), pa.Table.from_pylist(rows, schema=arrow_schema(table))
        )
        transaction.commit()
    now = (FIRST + 23 * 24) * 3600.0
    make_bands(spark, rollups, CLUSTER, now)
    number = rollups.manifest(CLUSTER).number
    make_bands(spark, rollups, CLUSTER, now)
    files = manifest.read(rollups.root, CLUSTER).files_for(BASELINES.name)
    monday = pq.ParquetFile(rollups.root / files[10].path).read().to_pylist()
    reasons = {(row["name"], row["measure"]): row for row in monday}
    published, short = reasons["orders", "published"], reasons["young", "published"]

    assert 168 == len(files)
    assert {10} == {row["hour_of_week"] for row in monday}
    assert ("hour-of-week", 4) == (published["scope"], published["values"])
    assert published["middle"] == pytest.approx(2.0)
    assert published["low"] < 2.0 < published["high"]
    assert ("not-yet", "2 of 3 days", None) == (short["scope"], short["reason"], short["low"])
    assert datetime.fromtimestamp((FIRST + 22 * 24 + 11) * 3600, UTC) == published["made_at"]
    assert [] == due(rollups, CLUSTER, now).hours
    assert number == rollups.manifest(CLUSTER).number


def test_only_hours_of_the_day_that_changed(spark, tmp_path) -> None:
    """A whole refresh ends with answers; a new hour makes the bands of its own time of the day due, and no others."""
    rollups, landing = Rollups(tmp_path / "rollups"), Landing(tmp_path / "landing")
    rows = queue("orders", counts(4 * 60))
    put(rollups, rows, 0, 3)
    downsample.refresh(spark, rollups, [CLUSTER])
    refresh(spark, landing, rollups, CLUSTER, (FIRST + 3) * 3600.0)
    put(rollups, rows, 3, 4)
    downsample.refresh(spark, rollups, [CLUSTER])

    assert answers_file.answers_path(rollups.root, CLUSTER).exists()
    assert [3] == due(rollups, CLUSTER, (FIRST + 4) * 3600.0).hours


def test_the_long_form(spark) -> None:
    """A family's frame as one row a value; what is not known has none."""
    (family,) = (it for it in FAMILIES if it.source is QUEUES_1M)
    rows = spark.createDataFrame(
        pa.Table.from_pylist(queue("orders", np.array([120.0, 60.0])), schema=arrow_schema(QUEUES_1M))
    )
    values = {
        (row["at"].replace(tzinfo=UTC).minute, row["measure"]): row["value"]
        for row in to_long(family.of_minutes(rows)).toArrow().to_pylist()
    }

    assert (2.0, 1.0) == (values[0, "acked"], values[1, "acked"])
    assert (0, "unacked") not in values
    assert (0, "ready") in values
