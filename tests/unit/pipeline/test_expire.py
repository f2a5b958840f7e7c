import json
import os
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.__main__ import main
from ackscope.clock import Instant
from ackscope.errors import UsageError
from ackscope.manifest import read
from ackscope.tables import ACK_BURSTS, BURSTS_1M, DAYS, FINDING_EVENTS, HOURS
from ackscope.tables.arrow import arrow_schema
from pipeline.expire import Retention, expire
from pipeline.hours import first_hour
from pipeline.jobs import generation
from pipeline.storage.landing import Landing, Partition
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import advance_watermark

DAY = 86_400.0
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
BURSTS_1H, BURSTS_1D = HOURS[BURSTS_1M.name], DAYS[BURSTS_1M.name]


class Clock:
    """Noon of 10 March 2026."""

    def now(self):
        """Return the fixed time."""
        return Instant(NOW, 0.0)


def landed(root, day, table=ACK_BURSTS, hour=9):
    """A landing file with one row of this hour of March."""
    folder = root / "landing" / Partition(table, "shop", date(2026, 3, day)).folder
    folder.mkdir(parents=True, exist_ok=True)
    row = {name: "x" for name in table.names if str(arrow_schema(table).field(name).type) == "string"}
    row |= {name: 1 for name in table.names if name not in row}
    row |= {"at": datetime(2026, 3, day, hour, tzinfo=UTC)}
    pq.write_table(pa.Table.from_pylist([row], schema=arrow_schema(table)), folder / f"{hour}.parquet")
    return folder / f"{hour}.parquet"


def rolled(root, *days, coarse=True, hour=9):
    """Rollups of one minute of each of these days of March, and of its hour and day."""
    transaction = Rollups(root / "rollups").transaction("shop")
    for day in days:
        moment, number = datetime(2026, 3, day, hour, tzinfo=UTC), first_hour(date(2026, 3, day)) + hour
        text = dict.fromkeys(("probe", "stream", "queue_type", "vhost", "node"), "x")
        counts = dict.fromkeys(("bursts", "frames", "multiple_frames", "messages", "messages_max", "interval_count"), 1)
        row = text | counts | {"interval_sum": 0.0, "interval_max": None}
        more = {"minutes": 1, "first_minute": moment, "last_minute": moment}

        def table(of, when, row=row, more=more):
            return pa.Table.from_pylist([row | more | {of.time: when}], schema=arrow_schema(of))

        transaction.replace_hours(BURSTS_1M, [number], table(BURSTS_1M, moment))
        if coarse:
            parts = {
                int(h): part for it in transaction.pending.files_for(BURSTS_1M.name) for h, part in it.parts.items()
            }
            transaction.replace_hours(BURSTS_1H, [number], table(BURSTS_1H, moment), {number: parts[number]})
            start = first_hour(date(2026, 3, day))
            days_of = {
                int(h): part for it in transaction.pending.files_for(BURSTS_1H.name) for h, part in it.parts.items()
            }
            midnight = moment.replace(hour=0)
            transaction.replace_hours(
                BURSTS_1D, range(start, start + 24), table(BURSTS_1D, midnight), {start: days_of[start]}
            )
    transaction.commit()


def all_ingested(root, until=1e11):
    """Write the watermark of a `run`, so that all present files count as rolled up."""
    advance_watermark(root / "rollups", generation(), until)


def do(root, *, dry_run=False, **keep):
    """Run expiry; grains that are not given are retained forever."""
    ages = dict.fromkeys(("raw", "minutes", "hours", "days")) | keep
    return expire(root / "landing", root / "rollups", Retention(**ages), Clock(), dry_run=dry_run)


def dates(root, table):
    """Days of March for which a rollup table has rows."""
    first = first_hour(date(2026, 3, 1))
    return [
        (int(start) - first) // 24 + 1
        for it in read(root / "rollups", "shop").files_for(table.name)
        for start in it.parts
    ]


def test_raw_rows_go_by_whole_dates(tmp_path):
    """Three days: the dates that ended more than three days ago; the findings of then stay."""
    old, new = [landed(tmp_path, day) for day in (5, 6)], [landed(tmp_path, day) for day in (7, 10)]
    finding = landed(tmp_path, 5, FINDING_EVENTS)
    rolled(tmp_path, 5, 6, 7, 10)
    all_ingested(tmp_path)
    size = sum(path.stat().st_size for path in old)
    planned = do(tmp_path, raw=3 * DAY, dry_run=True)

    assert all(path.exists() for path in old)

    summary = do(tmp_path, raw=3 * DAY)

    assert (2, 2, size, 2) == tuple(
        getattr(summary.removed["raw"], name) for name in ("dates", "files", "bytes", "rows")
    )
    assert planned.removed == summary.removed
    assert [] == summary.refused
    assert not any(path.parent.exists() for path in old)
    assert all(path.exists() for path in [*new, finding])
    assert [5, 6, 7, 10] == dates(tmp_path, BURSTS_1M)


def test_what_expired_is_never_rebuilt(tmp_path):
    """The first hour after it is not rebuilt either, because it needs earlier rows."""
    for day in (5, 7):
        landed(tmp_path, day)
    rolled(tmp_path, 5, 7)
    all_ingested(tmp_path)
    do(tmp_path, raw=3 * DAY)
    late = landed(tmp_path, 5)
    landing = Landing(tmp_path / "landing")
    (stats,) = landing.files(Partition(ACK_BURSTS, "shop", date(2026, 3, 5))).values()

    assert first_hour(date(2026, 3, 7)) + 1 == landing.floor("shop")
    assert frozenset() == stats.hours

    do(tmp_path, raw=3 * DAY)

    assert not late.exists()


@pytest.mark.parametrize("reason", ["no mark", "younger than the mark", "not in the manifest"])
def test_raw_rows_that_are_not_rolled_up_stay(tmp_path, reason):
    """With all later ones; the message says what to run. Earlier ones are removed."""
    first, waiting, after = (landed(tmp_path, day) for day in (4, 5, 6))
    rolled(tmp_path, 4, 6, *([] if reason == "not in the manifest" else [5]))
    if reason == "younger than the mark":
        all_ingested(tmp_path, after.stat().st_ctime + 1)
        os.utime(waiting, (after.stat().st_ctime + 9,) * 2)
    elif reason == "not in the manifest":
        all_ingested(tmp_path)
    summary = do(tmp_path, raw=3 * DAY)
    from_day = 4 if reason == "no mark" else 5
    count = ", ".join(f"2026-03-0{day} (1 h)" for day in ((4, 5, 6) if from_day == 4 else (5,)))

    assert [
        (
            f"cluster shop: raw rows from 2026-03-0{from_day} on stay, because some may not be rolled up yet: {count}; "
            "run `ackscope pipeline run`, then `expire` again"
        )
    ] == summary.refused
    assert [from_day == 4, True, True] == [path.exists() for path in (first, waiting, after)]
    assert Landing(tmp_path / "landing").floor("shop") <= first_hour(date(2026, 3, 5)) + 9


def test_the_first_hour_that_waits_is_not_frozen(tmp_path):
    """A row of midnight that is not rolled up keeps the mark below it."""
    landed(tmp_path, 4)
    landed(tmp_path, 6, hour=0)
    rolled(tmp_path, 4)
    all_ingested(tmp_path)
    do(tmp_path, raw=3 * DAY)

    assert Landing(tmp_path / "landing").floor("shop") <= first_hour(date(2026, 3, 6))


def test_each_grain_goes_by_its_own_age(tmp_path):
    """Coarser grains made of it stay."""
    rolled(tmp_path, 1, 4, 8)
    summary = do(tmp_path, minutes=3 * DAY, hours=7 * DAY)

    assert ([8], [4, 8], [1, 4, 8]) == tuple(dates(tmp_path, table) for table in (BURSTS_1M, BURSTS_1H, BURSTS_1D))
    assert (2, 2) == (summary.removed["minutes"].dates, summary.removed["minutes"].rows)
    assert (1, 0) == (summary.removed["hours"].dates, summary.removed["days"].dates)


def test_minutes_of_which_no_hour_was_made_stay(tmp_path):
    """They would be lost for ever; the message says what to run."""
    rolled(tmp_path, 1, coarse=False)
    summary = do(tmp_path, minutes=3 * DAY)

    assert [1] == dates(tmp_path, BURSTS_1M)
    assert [
        (
            "cluster shop: 1 hours of bursts_1m from 2026-03-01 on stay, because they are not downsampled yet; "
            "run `ackscope pipeline run`"
        )
    ] == summary.refused


def test_a_dry_run_changes_nothing(tmp_path):
    """Neither files nor manifest; what it says is what would be done."""
    rolled(tmp_path, 1, 8)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.*"))
    planned = do(tmp_path, minutes=3 * DAY, dry_run=True)

    assert before == sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.*"))
    assert planned.removed == do(tmp_path, minutes=3 * DAY).removed


@pytest.mark.parametrize(
    ("ages", "message"),
    [
        ({"raw": 3600.0}, "--raw is less than 1d: late rows would find half of their hour expired"),
        (
            {"raw": 9 * DAY, "minutes": DAY},
            "--minutes is shorter than --raw: expired rows would be created again; retain min",
        ),
        (
            {"hours": DAY, "minutes": None},
            "--hours is shorter than --minutes: expired rows would be created again; retain ho",
        ),
    ],
)
def test_ages_that_make_no_sense(ages, message):
    """A coarse grain that expires before a finer one would be rebuilt from it."""
    with pytest.raises(UsageError) as caught:
        Retention(**ages)

    assert str(caught.value).startswith(message)


def test_the_command(tmp_path, capsys):
    """Says what went, exits with 3 where something had to stay, and takes `forever`."""
    words = ["pipeline", "expire", "--landing", str(tmp_path / "landing"), "--rollups", str(tmp_path / "rollups")]

    assert 0 == main([*words, "--minutes", "forever", "--hours", "forever"])
    assert "nothing has expired\n" == capsys.readouterr().out

    landed(tmp_path, 1)

    assert 3 == main([*words, "--json"])
    assert 1 == len(json.loads(capsys.readouterr().out)["refused"])
    with pytest.raises(SystemExit) as end:
        main([*words, "--raw", "soon"])

    assert 3 == end.value.code
    assert "invalid age 'soon'; use 3d, 12h or forever" in capsys.readouterr().err
