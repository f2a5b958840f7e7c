"""The ranked list of changes and its curves."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.ranking import ChangePoint, FindingEpisode, rank_changes
from ackscope.tables import LATENCY_1M, QUEUES_1M
from dashboard.charts import history_charts
from dashboard.data import history_answers
from dashboard.data.object_minutes import object_minutes
from dashboard.frames import history_frames
from dashboard.frames.history_frames import ChangeCurve
from dashboard.frames.minute_frames import Axis
from tests.dashboard.rollup_files import latency_row, queue_row, this_minute, write

NOW = 1_767_268_800.0


def shift(name: str = "orders", measure: str = "acked", score: float = 50.0, at: float = NOW, **changes) -> ChangePoint:
    """The ack rate of a queue fell from 120/s to 0/s half an hour ago, unless changed."""
    values = {"kind": "queue", "vhost": "/", "before": 120.0, "after": 0.0, "minutes": 30, **changes}
    return ChangePoint(at=at, name=name, measure=measure, score=score, **values)


def began(name: str, severity: str = "critical") -> FindingEpisode:
    """A finding about a queue."""
    return FindingEpisode(NOW, None, "stuck-consumer", severity, "queue", "/", name)


@given(st.lists(st.tuples(st.floats(5, 5000), st.floats(-600, 600)), min_size=1, max_size=9))
def test_the_largest_and_most_certain_change_is_first(parts) -> None:
    """Equal ones are in order of time; the order does not depend on that of the rows."""
    shifts = [shift(f"q{number}", score=score, at=NOW + at) for number, (score, at) in enumerate(parts)]
    ranked = history_frames.rank_by_size(rank_changes(shifts, [], NOW))
    sizes = [(it.strength, -it.at) for it in ranked]

    assert sorted(sizes, reverse=True) == sizes
    assert ranked == history_frames.rank_by_size(rank_changes(shifts[::-1], [], NOW))


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (shift(), "ack rate: 120/s → 0/s (50 times the scatter before, for 30 min so far)"),
        (shift(measure="mem_used", before=2**30, after=2**31, score=-7.2, minutes=0),
         "memory used: 1 GiB → 2 GiB (7 times the scatter before)"),
        (shift(measure="confirm_p99", before=0.002, after=0.9, score=900.0, minutes=1),
         "p99 confirm latency: 2 ms → 900 ms (over 100 times the scatter before, for 1 min so far)"),
        (shift(measure="ready", before=3.0, after=9000.0, score=float("nan"), minutes=0),
         "messages ready: 3 → 9,000 (scatter before unknown)"),
    ],
)  # fmt: skip
def test_a_change_says_from_where_to_where_and_how_unusual_it_is(known: ChangePoint, text: str) -> None:
    """With units."""
    assert text == history_frames.shift_text(known)


def test_curves_are_those_of_the_largest_changes(tmp_path: Path) -> None:
    """Of up to two measures, of the object itself before its parts; rates are per second, another vhost is left out."""
    end = this_minute()
    minutes = [end - timedelta(minutes=it) for it in range(10, 0, -1)]
    rows = [queue_row(at, "orders", 5, acked=120) for at in minutes]
    write(tmp_path, QUEUES_1M, [*rows, *(queue_row(at, "orders", 900, vhost="other") for at in minutes)])
    at = minutes[5].timestamp()
    moves = [
        shift(measure=name, score=score, at=at) for name, score in (("ready", 9.0), ("acked", 50.0), ("unacked", 7.0))
    ]
    (changed,) = rank_changes(moves, [], at)
    found = object_minutes(tmp_path, "shop", [("queue", "/", "orders")], minutes[0], end)
    curves = history_frames.curves(changed, found.rows)

    assert None is found.problem
    assert ["acked", "ready"] == [it.measure for it in curves]
    assert ([2.0] * 10, [5.0] * 10) == (list(curves[0].points), list(curves[1].points))


def test_a_finding_without_a_change_has_the_curves_of_its_queue(tmp_path: Path) -> None:
    """Without levels, because nobody measured any; an object without minutes has none."""
    end = this_minute()
    minutes = [end - timedelta(minutes=it) for it in range(10, 0, -1)]
    write(tmp_path, QUEUES_1M, [queue_row(at, "orders", 5) for at in minutes])
    found = object_minutes(tmp_path, "shop", [("queue", "/", "orders")], minutes[0], end)
    known, unknown = rank_changes([], [began("orders"), began("other", "info")], NOW)

    assert [("unacked", None), ("ready", None)] == [
        (it.measure, it.shift) for it in history_frames.curves(known, found.rows)
    ]
    assert [] == history_frames.curves(unknown, found.rows)


def test_the_latency_of_a_probe_is_a_quantile_over_its_delivery_modes(tmp_path: Path) -> None:
    """Of its own node and stream only."""
    end = this_minute()
    minutes = [end - timedelta(minutes=it) for it in range(3, 0, -1)]
    rows = [latency_row(at, [0.002] * 9, delivery_mode=1) for at in minutes]
    rows += [latency_row(at, [0.2] * 1, delivery_mode=2) for at in minutes]
    rows += [latency_row(at, [9.0] * 50, node="rabbit@other") for at in minutes]
    write(tmp_path, LATENCY_1M, rows)
    name = "confirm/classic/rabbit@shop-1"
    found = object_minutes(tmp_path, "shop", [("probe", "", name)], minutes[0], end)
    move = shift(name, "confirm_p50", kind="probe", vhost="", at=minutes[1].timestamp())
    (changed,) = rank_changes([move], [], move.at)
    (curve,) = history_frames.curves(changed, found.rows)

    assert 3 == len(curve.points)
    assert all(0.0015 < value < 0.003 for value in curve.points)


def test_a_history_of_minutes_only_is_data(tmp_path: Path) -> None:
    """The first minutes of a pipeline: no hour has been computed yet."""
    end = this_minute()
    write(tmp_path, QUEUES_1M, [queue_row(end - timedelta(minutes=1), "orders", 5)])
    found = history_answers.changes(tmp_path, "shop", end - timedelta(minutes=30), end)
    before = history_answers.changes(tmp_path, "shop", end - timedelta(hours=9), end - timedelta(hours=8))

    assert (1, 0) == (found.hours_with_data, before.hours_with_data)


def test_a_damaged_file_is_a_problem_and_no_exception(tmp_path: Path) -> None:
    """The page says so."""
    end = this_minute()
    write(tmp_path, QUEUES_1M, [queue_row(end - timedelta(minutes=1), "orders", 5)])
    next((tmp_path / QUEUES_1M.name).rglob("*.parquet")).write_bytes(b"not parquet")

    assert object_minutes(tmp_path, "shop", [("queue", "/", "orders")], end - timedelta(hours=1), end).problem


def test_a_curve_is_grey_before_and_coloured_after_with_the_levels_of_both() -> None:
    """The unit is in its title; a gap stays a gap."""
    start = datetime.fromtimestamp(NOW, UTC)
    minutes = pd.DatetimeIndex([start + timedelta(minutes=it) for it in (*range(5), *range(7, 12))])
    values = pd.Series([0.002] * 5 + [0.5] * 5, index=minutes)
    move = shift(measure="confirm_p99", before=0.002, after=0.5, at=NOW + 7 * 60)
    axis = Axis.between(start, start + timedelta(minutes=12), 1)
    figure = history_charts.before_and_after([ChangeCurve("confirm_p99", values, move.at, move)] * 2, axis)
    lines = [trace.line.color for trace in figure.data]
    levels = [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1]

    assert [history_charts.theme.OTHER, history_charts.INCREASE] * 2 == lines
    assert [2.0, 500.0] * 2 == pytest.approx(levels)
    assert ["p99 confirm latency, ms"] * 2 == [note.text for note in figure.layout.annotations]
    assert any(pd.isna(value) for trace in figure.data for value in trace.y)
