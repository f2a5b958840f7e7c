"""Level shifts: found to the minute, reported once, and not if they are normal for the series."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from ackscope.tables import CHANGES, CONSUMERS_1M
from pipeline.analysis import analysis_state, changes
from pipeline.analysis.attach_queue import attach_queue
from pipeline.analysis.column_packing import ObjectMatrix
from pipeline.analysis.noise import noise
from pipeline.analysis.novelty import is_novel
from pipeline.analysis.refresh import due, shifts
from pipeline.analysis.report_filter import select_reportable
from pipeline.analysis.series import FAMILIES
from pipeline.analysis.shifts import LASTING_MINUTES
from pipeline.analysis.shifts import shifts as found_in
from pipeline.schema import spark_schema
from pipeline.storage.rollups import Rollups
from tests.spark.series_made import CLUSTER, FIRST, START, counts, put, queue

_DAY = 1440


def _sure(values: np.ndarray, measure: str) -> list:
    return [it for it in found_in(values, noise(measure)) if it.sure]


@pytest.mark.parametrize("factor", [0.0, 0.4, 3.0])
def test_a_step_is_found_at_its_minute(factor) -> None:
    """A rate that stops, falls or rises is reported with the minute and both levels."""
    values = counts(360)
    values[200:] = counts(160, 120.0 * factor, seed=2)

    (found,) = _sure(values / 60, "acked")

    assert found.at == pytest.approx(200, abs=1)
    assert (found.before, found.after) == pytest.approx((2.0, 2.0 * factor), abs=0.2)
    assert found.minutes == 360 - found.at


def test_a_growing_backlog_is_found_where_it_begins() -> None:
    """A gradual rise is dated at the minute at which it left the old level."""
    values = np.concatenate([counts(200, 3.0), 3 + np.arange(160) * 40.0])

    found = _sure(values, "ready")[0]

    assert found.at == pytest.approx(200, abs=2)


def _rows(kind: str = "queue", name: str = "orders", **measures: np.ndarray) -> pa.Table:
    """The candidates of one object with these series of minutes."""
    family = next(it for it in FAMILIES if it.kind == kind and set(measures) <= set(it.shifting))
    length = len(next(iter(measures.values())))
    nothing = np.full((1, length), np.nan)
    values = {name: measures[name][None, :] if name in measures else nothing for name in family.shifting}
    objects = ObjectMatrix({"kind": [kind], "vhost": ["/"], "name": [name], "prefix": [""]}, values)
    first_hours = range(FIRST, FIRST + -(-length // 60), changes.BLOCK_HOURS)
    return changes.find_candidates(objects, family, FIRST, first_hours)


def _reported(kind: str = "queue", **measures: np.ndarray) -> list[tuple[int, str]]:
    """The reported changes of one object with these series of minutes: minute since `START` and measure."""
    rows = select_reportable(_rows(kind, **measures)).to_pylist()
    return sorted((round((row["at"] - START).total_seconds() / 60), row["measure"]) for row in rows)


def test_a_burst_is_not_reported() -> None:
    """What lasts less than `LASTING` minutes is no lasting shift, and its end is none either."""
    values = counts(480)
    values[200 : 200 + LASTING_MINUTES - 10] *= 4

    assert [] == _reported(published=values / 60)


def test_the_end_is_reported_where_the_beginning_is() -> None:
    """A rate that stops for an hour is reported twice; a backlog where it begins; deliveries equal acks."""
    rate, waiting = counts(480) / 60, np.zeros(480)
    rate[200:260], waiting[200:260] = 0, 5000

    assert [(200, "acked"), (200, "ready"), (260, "acked")] == _reported(acked=rate, delivered=rate, ready=waiting)


def test_a_slow_leak_is_judged_where_it_begins() -> None:
    """A backlog that grows by five a minute is sure: the first place that moves is still half on the level before."""
    leak = np.concatenate([np.zeros(200), np.arange(120) * 5.0])

    (found, *_) = found_in(leak, noise("ready"))

    assert (found.at, found.sure) == (pytest.approx(200, abs=2), True)


def test_what_stands_out_very_far_is_reported_early() -> None:
    """A queue whose consumers all stop is reported after 15 minutes, and the lasting shift only once."""
    acked, consumers = counts(480) / 60, np.full(480, 4.0)
    acked[200:], consumers[200:] = 0, 0
    both = [(200, "acked"), (200, "consumers")]

    assert [] == _reported(acked=acked[:208], consumers=consumers[:208])
    assert both == _reported(acked=acked[:215], consumers=consumers[:215])
    assert both == _reported(acked=acked, consumers=consumers)


def test_traffic_that_rises_is_not_reported_early() -> None:
    """It does so on any day, and its end is no fall."""
    values = counts(480)
    values[200:230] *= 6

    assert [] == _reported(published=values[:216] / 60, acked=values[:216] / 60)
    assert [] == _reported(published=values / 60, acked=values / 60)


def test_a_spike_is_reported_with_what_it_was() -> None:
    """Slow confirms that were over before they lasted are one change: level and minutes are those of the spike."""
    confirm = np.full(480, 0.002)
    confirm[200:220] = 0.2

    (row,) = select_reportable(_rows("probe", confirm_p50=confirm)).to_pylist()

    assert row["at"] == START + timedelta(minutes=200)
    assert (row["before"], row["after"], row["minutes"]) == (0.002, 0.2, 20)


def test_a_batch_is_that_of_every_night_on_any_channel() -> None:
    """A client that reconnects has another channel, from the same host: its fourth night is not novel."""
    nights = np.full(5 * _DAY, 1.0)
    for night in range(5):
        nights[night * _DAY + 300 : night * _DAY + 400] = 60
    alone = [
        _rows("channel", f"10.0.0.7:{4000 + night} -> 10.0.0.1:5672 (1)", prefetch=np.where(mine, nights, np.nan))
        for night in range(5)
        if (mine := np.arange(5 * _DAY) // _DAY == night).any()
    ]

    assert 2 == select_reportable(alone[0]).num_rows
    assert 0 == select_reportable(pa.concat_tables(alone)).num_rows


def test_a_full_channel_is_reported_beside_what_else_moved() -> None:
    """A full prefetch alone is not reported; together with a falling rate it is."""
    full, acked = np.zeros(480), counts(480) / 60
    full[200:], acked[200:] = 1, acked[200:] / 8

    assert [] == _reported("channel", at_ceiling=full)
    assert [(200, "acked"), (200, "at_ceiling")] == _reported("channel", at_ceiling=full, acked=acked)


@pytest.mark.parametrize("measure", ["acked", "ready", "consumers"])
def test_a_constant_series_has_no_shift(measure) -> None:
    """A series that never moves has no change, whatever its level."""
    assert [] == found_in(np.full(400, 7.0), noise(measure))


def test_noise_has_no_sure_shift() -> None:
    """A hundred noisy days of queues of very different rates tell nothing."""
    dice = np.random.default_rng(5)
    select_reportable = []
    for rate in np.geomspace(0.2, 3000, 100):
        wobble = np.exp(np.repeat(np.cumsum(dice.normal(0, 0.03, 48)), 30))
        select_reportable += _sure(dice.poisson(rate * wobble) / 60, "acked")

    assert [] == select_reportable


def test_a_gap_is_no_shift() -> None:
    """Unknown minutes are skipped; another level after them is dated at the first known one."""
    same, other = counts(400), counts(400)
    other[230:] *= 4
    same[200:230] = other[200:230] = np.nan

    assert [] == _sure(same / 60, "acked")
    assert [230] == [it.at for it in _sure(other / 60, "acked")]


def _new(at: np.ndarray, size: np.ndarray) -> list[bool]:
    """The novel shifts of one series without siblings."""
    return is_novel(at, size, at, size).tolist()


def test_what_comes_every_night_is_not_novel() -> None:
    """Four nights at about the same time are normal; one afternoon is novel."""
    at = np.array([180, 180 + _DAY, 190 + 2 * _DAY, 2 * _DAY + 900, 175 + 3 * _DAY])

    assert [False, False, False, True, False] == _new(at, np.array([5.0, 5.1, 5.0, 5.0, 4.9]))


def test_what_comes_every_week_is_not_novel() -> None:
    """Three weeks at the same time of the week are usual."""
    at = np.array([600, 600 + 7 * _DAY, 610 + 14 * _DAY])

    assert [False, False, False] == _new(at, np.array([5.0, 5.0, 6.0]))


def test_what_is_much_larger_than_usual_is_novel() -> None:
    """A shift of several times the usual size is reported anyway."""
    at = 180 + np.arange(5) * _DAY

    assert [False, False, False, False, True] == _new(at, np.array([5.0, 5.0, 5.0, 5.0, 50.0]))


def test_blocks_around_new_minutes() -> None:
    """The blocks that look at an hour are looked through again, as far as there are minutes."""
    assert [8] == changes.blocks_for({10}, {8, 9, 10})
    assert [4, 8, 12] == changes.blocks_for({8}, set(range(24)))


def test_the_queue_of_a_channel_or_consumer(spark) -> None:
    """The one that it takes from at that time; none where it takes from several."""
    took = [
        (0, "orders", "t1", "c1"),
        (1, "orders", "t1", "c1"),
        (0, "orders", "t2", "c2"),
        (0, "mail", "t2", "c2"),
        (30, "mail", "t1", "c1"),
    ]
    consumers = [
        dict.fromkeys(CONSUMERS_1M.names)
        | {"minute": START + timedelta(minutes=minute), "vhost": "/", "queue": queue, "tag": tag, "channel": channel}
        for minute, queue, tag, channel in took
    ]
    rows = pa.concat_tables(
        _rows(kind, name, **{measure: np.where(np.arange(480) < 200, 1.0, 60.0)})
        for kind, name, measure in (
            ("channel", "c1", "unacked"),
            ("channel", "c2", "unacked"),
            ("consumer", "mail/t2", "prefetch"),
            ("queue", "orders", "unacked"),
        )
    )
    later = [it | {"minute": it["minute"] + timedelta(minutes=200)} for it in consumers]
    frame = spark.createDataFrame(later, spark_schema(CONSUMERS_1M))

    def queues(stretch: int) -> dict[str, set[str | None]]:
        select_reportable: dict[str, set[str | None]] = {}
        for row in attach_queue(rows, frame, stretch).to_pylist():
            select_reportable.setdefault(row["name"], set()).add(row["queue"])
        return select_reportable

    assert {"c1": {"orders"}, "c2": {None}, "mail/t2": {"mail"}, "orders": {None}} == queues(1200)
    assert {None} == queues(24 * 3600)["c1"]


@pytest.fixture
def stopped() -> list[dict]:
    """Two queues of nine hours: one stops at 5:10, and its backlog grows; the other goes on."""
    acked, ready = counts(540), np.zeros(540)
    acked[310:] = 0
    ready[310:] = np.arange(230) * 120
    return queue("orders", acked, ready) + queue("mail", counts(540, seed=3))


def test_minutes_to_changes(spark, tmp_path, rolled, stopped) -> None:
    """A queue that stops is reported with all its changes, to the minute; a second run changes nothing."""
    rollups = Rollups(tmp_path)
    put(rollups, stopped)
    now = (FIRST + 9) * 3600.0
    shifts(spark, rollups, CLUSTER, now)
    number = rollups.manifest(CLUSTER).number
    shifts(spark, rollups, CLUSTER, now)
    rows = rolled(tmp_path, CHANGES)

    moment = START + timedelta(minutes=310)
    assert {("acked", 0.0), ("published", 0.0)} < {(row["measure"], row["after"]) for row in rows}
    assert {"ready", "acked", "published"} == {row["measure"] for row in rows}
    assert {("queue", "/", "orders")} == {(row["kind"], row["vhost"], row["name"]) for row in rows}
    assert all(abs((row["at"] - moment).total_seconds()) <= 120 for row in rows)
    assert number == rollups.manifest(CLUSTER).number
    assert [] == due(rollups, CLUSTER, now).blocks


def test_what_was_remembered_before_is_retained(tmp_path) -> None:
    """A file of before shifts knew their queue: nothing is looked for again, what may have expired is not lost."""
    known = analysis_state.AnalysisState(shifted={FIRST: "a"}, candidates=_rows(acked=np.repeat([2.0, 9.0], 240)))
    analysis_state.write(tmp_path, CLUSTER, replace(known, candidates=known.candidates.drop_columns("queue")))

    assert known.candidates.num_rows
    assert known == analysis_state.read(tmp_path, CLUSTER)


def test_bit_by_bit_is_as_at_once(spark, tmp_path, fingerprint, stopped) -> None:
    """Hours that arrive one after the other give the same rows as all together; the state may be lost."""
    slow, fast = Rollups(tmp_path / "slow"), Rollups(tmp_path / "fast")
    put(fast, stopped)
    shifts(spark, fast, CLUSTER, (FIRST + 9) * 3600.0)
    for first, end in ((0, 6), (6, 9)):
        put(slow, stopped, first, end)
        shifts(spark, slow, CLUSTER, (FIRST + end) * 3600.0)
    analysis_state.state_path(slow.root, CLUSTER).write_bytes(b"damaged")

    assert fingerprint(fast.root, [CHANGES.name]) == fingerprint(slow.root, [CHANGES.name])
    assert due(slow, CLUSTER, (FIRST + 9) * 3600.0).blocks
