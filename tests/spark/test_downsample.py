"""Hours of minutes, and days of hours: which are made again, and which stay."""

import pytest

from ackscope.clock import SystemClock
from ackscope.tables import DAYS, HOURS, MINUTES, OUTCOMES_1M, PROBE_MESSAGES
from pipeline import downsample, jobs
from pipeline.storage.rollups import Rollups
from tests.spark.landing_files import message, write, write_random
from tests.spark.moments import NOON

pytestmark = pytest.mark.spark

HOUR = NOON // 3600
OUTCOMES_1H, OUTCOMES_1D = HOURS[OUTCOMES_1M.name], DAYS[OUTCOMES_1M.name]


def minutes(root, session):
    """Roll the landing folder up to minutes."""
    jobs.run(root / "landing", root / "rollups", session, SystemClock(), minutes_only=True)
    return Rollups(root / "rollups")


def messages(rolled, root, table):
    """How many messages each hour, or day, has."""
    return [row["messages"] for row in rolled(root / "rollups", table)]


def test_all_tables_are_made_and_made_once(spark, session, tmp_path):
    """Every table that has minutes has hours and days; a second time there is nothing to do."""
    write_random(tmp_path / "landing", seed=4)
    rollups = minutes(tmp_path, session)
    downsample.refresh(spark, rollups, ["shop"])
    first = rollups.manifest("shop")
    downsample.refresh(spark, rollups, ["shop"])

    assert first == rollups.manifest("shop")
    for name in MINUTES.keys() & first.tables.keys():
        assert {HOURS[name].name, DAYS[name].name} <= first.tables.keys()


def test_only_what_changed_is_made_again(spark, session, rolled, tmp_path):
    """The hour that got a row, and its day; the other hour stays as it is."""
    write(tmp_path / "landing", PROBE_MESSAGES, [message(1, 0), message(2, 3600)], "a")
    rollups = minutes(tmp_path, session)
    downsample.refresh(spark, rollups, ["shop"])
    write(tmp_path / "landing", PROBE_MESSAGES, [message(3, 60)], "late")
    minutes(tmp_path, session)
    (step,) = (it for it in downsample.STEPS if it.target == OUTCOMES_1H)

    assert {HOUR} == set(downsample.find_stale(rollups.manifest("shop"), step).rebuild)

    downsample.refresh(spark, rollups, ["shop"])

    assert [2, 1] == messages(rolled, tmp_path, OUTCOMES_1H)
    assert [3] == messages(rolled, tmp_path, OUTCOMES_1D)


def test_expired_minutes_keep_their_hour(spark, session, rolled, tmp_path):
    """What was dropped because of its age leaves its hour and its day as they are; one replaced by nothing does not."""
    write(tmp_path / "landing", PROBE_MESSAGES, [message(1, 0), message(2, 3600), message(3, 7200)], "a")
    rollups = minutes(tmp_path, session)
    downsample.refresh(spark, rollups, ["shop"])
    transaction = rollups.transaction("shop")
    transaction.drop_hours(OUTCOMES_1M, [HOUR])
    transaction.replace_hours(OUTCOMES_1M, [HOUR + 1], transaction.rows(OUTCOMES_1M, HOUR + 1, HOUR + 2).slice(0, 0))
    transaction.commit()
    downsample.refresh(spark, rollups, ["shop"])

    assert [1, 1] == messages(rolled, tmp_path, OUTCOMES_1H)
    assert [2] == messages(rolled, tmp_path, OUTCOMES_1D)

    transaction = rollups.transaction("shop")
    transaction.drop_hours(OUTCOMES_1H, [HOUR])
    transaction.commit()
    downsample.refresh(spark, rollups, ["shop"])

    assert [1] == messages(rolled, tmp_path, OUTCOMES_1H)
    assert [2] == messages(rolled, tmp_path, OUTCOMES_1D)
