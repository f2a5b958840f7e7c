"""`backfill`: the same result for some dates; rollups whose raw rows have expired stay."""

import random
from datetime import date

import pytest

from ackscope.clock import SystemClock
from ackscope.tables import POLL_SAMPLES, PROBE_STEPS, QUEUE_SAMPLES
from pipeline import jobs
from pipeline.backfill import DateRange, backfill
from pipeline.stop import Stop, StoppedError
from pipeline.storage.rollups import Rollups
from tests.spark.landing_files import random_polls, random_samples, random_steps, step, write

pytestmark = pytest.mark.spark

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)
MIDNIGHT = 12 * 3600.0


@pytest.fixture
def again(session, tmp_path):
    """Backfill dates of `tmp_path`."""

    def do(first, last, **options):
        folders = tmp_path / "landing", tmp_path / "rollups"
        return backfill(*folders, DateRange(first, last), session, SystemClock(), **options)

    return do


def test_backfill_gives_what_run_gave(session, again, fingerprint, tmp_path):
    """Over half of it nothing changes; hours that were dropped come back; hours without raw rows stay."""
    dice = random.Random(1)
    for seconds in (MIDNIGHT - 900, MIDNIGHT):
        write(tmp_path / "landing", PROBE_STEPS, random_steps(dice, 50, seconds, 900), "steps")
        write(tmp_path / "landing", QUEUE_SAMPLES, random_samples(dice, 3, seconds, 900), "samples")
        write(tmp_path / "landing", POLL_SAMPLES, random_polls(dice, seconds, 900), "polls")
    jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)
    again(FIRST, SECOND)
    before = fingerprint(tmp_path / "rollups")
    number = Rollups(tmp_path / "rollups").manifest("shop").number
    planned = again(SECOND, SECOND, dry_run=True)
    summary = again(SECOND, SECOND)

    assert (1, 0, 0) == (summary.hours, summary.without_raw, summary.rollup_files)
    assert (planned.hours, planned.landing_rows) == (summary.hours, summary.landing_rows)
    assert number == Rollups(tmp_path / "rollups").manifest("shop").number

    for path in (tmp_path / "landing").rglob("*/date=2026-03-02/*.parquet"):
        path.unlink()
    second = again(FIRST, SECOND)

    assert (1, 1) == (second.hours, second.without_raw)
    assert {key for key in before if int(key.rpartition("/")[2]) % 24 == 0} <= fingerprint(tmp_path / "rollups").keys()


def test_a_stop_is_reported(again, tmp_path):
    """It goes no further, and the command says so."""
    write(tmp_path / "landing", PROBE_STEPS, [step(0)], "steps")
    stop = Stop()
    stop.requested = True

    with pytest.raises(StoppedError):
        again(FIRST, FIRST, stop=stop)
