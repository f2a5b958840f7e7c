from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from ackscope.latency import COLUMNS, bucket, quantile
from ackscope.tables import LATENCY_1M
from ackscope.tables.arrow import arrow_schema
from dashboard.data.rollups import MinuteHistory
from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import RANGES, Axis, Range
from tests.dashboard.rollup_files import burst_row, latency_row, outcome_row, queue_row

NOW = datetime(2026, 3, 1, 8, 41, 37, tzinfo=UTC)
END = NOW.replace(second=0)
AXIS = Axis.until(NOW, RANGES["15m"])


def before(minutes: int) -> datetime:
    """The start of a minute before the end of the axis."""
    return END - timedelta(minutes=minutes)


def test_the_axis_ends_with_the_last_complete_minute() -> None:
    """Half a minute would look like a drop."""
    assert (before(15), before(1)) == (AXIS.points[0], AXIS.points[-1])


@pytest.mark.parametrize("span", RANGES.values(), ids=RANGES)
def test_every_range_is_made_of_whole_steps(span: Range) -> None:
    """All points represent the same number of minutes, and charts stay small."""
    points = Axis.until(NOW, span).points

    assert span.minutes == len(points) * span.step
    assert len(points) <= 200


def test_quantiles_come_from_merged_buckets() -> None:
    """99 fast messages on one node and one slow on another: the mean of both p99 would be far off."""
    fast, slow = [0.001] * 99, [1.0]
    rows = pd.DataFrame([latency_row(before(3), fast), latency_row(before(3), slow, node="rabbit@other")])
    counts = [0] * len(COLUMNS)
    for value in fast + slow:
        counts[bucket(value)] += 1

    point = minute_frames.latency(rows, AXIS, "classic").loc[before(3)]

    assert [quantile(counts, 1.0, 0.5), quantile(counts, 1.0, 0.99), 1.0, 100] == list(point)
    assert point["p99"] < 0.002


def test_other_measures_probes_and_bucket_edges_are_excluded() -> None:
    """Only comparable rows are summed."""
    rows = pd.DataFrame(
        [
            latency_row(before(3), [0.001]),
            latency_row(before(3), [9.0], measure="response"),
            latency_row(before(3), [9.0], probe="delivery"),
            latency_row(before(3), [9.0], bounds="another"),
            latency_row(before(3), [9.0], stream="quorum"),
        ]
    )

    assert (1, 0.001) == tuple(minute_frames.latency(rows, AXIS, "classic").loc[before(3), ["count", "max"]])


def test_minutes_without_rows_are_gaps() -> None:
    """They are missing, not zero, and reported as time ranges."""
    rows = pd.DataFrame([outcome_row(before(back)) for back in (15, 14, 10, 9, 8, 7, 6, 5, 4, 3, 2)])
    sums = minute_frames.outcomes(rows, AXIS)

    assert sums.loc[before(13) : before(11)].isna().all(axis=None)
    assert [(before(13), before(10)), (before(1), END)] == minute_frames.gaps([sums], AXIS)


def test_no_rows_at_all_are_one_gap() -> None:
    """An empty table gives empty charts, not an error."""
    empty = MinuteHistory()
    shaped = [
        minute_frames.latency(empty.latency, AXIS, "classic"),
        minute_frames.outcomes(empty.outcomes, AXIS),
        minute_frames.batches(empty.bursts, AXIS, "classic"),
        minute_frames.redelivered(empty.redelivered, AXIS),
    ]

    assert [(before(15), END)] == minute_frames.gaps(shaped, AXIS)
    assert {} == minute_frames.depth(empty.depth, AXIS)


def test_steps_longer_than_a_minute_add_up() -> None:
    """Counts of the minutes of a step are summed, buckets too."""
    axis = Axis.until(NOW, Range("", 10, 5))
    rows = pd.DataFrame([outcome_row(before(back), acked=1200 - back, nacked=back) for back in (10, 7, 6, 2, 1)])
    sums = minute_frames.outcomes(rows, axis)

    assert [[3600, 23], [2400, 3]] == sums[["messages", "nacked"]].to_numpy().tolist()


def test_a_step_that_the_data_does_not_reach_the_end_of_has_no_sum() -> None:
    """It would look like a drop."""
    axis = Axis.until(NOW, Range("", 10, 5))
    rows = pd.DataFrame([outcome_row(before(back)) for back in (10, 7, 6, 5, 4)])
    sums = minute_frames.outcomes(rows, axis)["messages"]

    assert [3600.0] == sums.dropna().tolist()
    assert [(before(5), END)] == minute_frames.gaps([pd.DataFrame(sums)], axis)


def test_nacks_by_design_are_not_among_the_outcomes() -> None:
    """Only messages that a client would miss remain."""
    by_design = {**outcome_row(before(2), acked=0, nacked=30), "probe": "nack", "stream": "nack"}
    sums = minute_frames.outcomes(pd.DataFrame([outcome_row(before(2), acked=100, nacked=1), by_design]), AXIS)

    assert (1200, 1) == tuple(sums.loc[before(2), ["messages", "nacked"]])


def test_mean_batch_is_messages_by_bursts() -> None:
    """Over all nodes; the largest is the largest of any."""
    rows = pd.DataFrame(
        [
            burst_row(before(2), bursts=10, messages=100, messages_max=30),
            burst_row(before(2), bursts=90, messages=100, messages_max=7, node="rabbit@other"),
            burst_row(before(1), bursts=0, messages=0, messages_max=0),
        ]
    )
    shaped = minute_frames.batches(rows, AXIS, "classic")

    assert [2.0, 30.0] == list(shaped.loc[before(2)])
    assert pd.isna(shaped.loc[before(1), "mean"])


def test_depth_ranks_the_deepest_first_and_unknown_is_not_zero() -> None:
    """A queue whose length is unknown has no point."""
    rows = pd.DataFrame(
        [queue_row(before(2), "small", 3), queue_row(before(2), "big", 900), queue_row(before(1), "big", None)]
    )
    shaped = minute_frames.depth(rows, AXIS)

    assert [("/", "big"), ("/", "small")] == list(shaped)
    assert pd.isna(shaped["/", "big"].loc[before(1), "ready"])


def test_unknown_streams_come_last() -> None:
    """A type of a newer broker is shown too."""
    rows = pd.DataFrame(
        {
            "stream": ["stream", "jms", "classic", "classic-large", None],
            "queue_type": ["stream", "jms", "classic", "classic", None],
        }
    )

    assert ["classic", "stream", "jms"] == minute_frames.streams(rows)


def test_the_synthetic_rows_match_the_schema() -> None:
    """The rows of these tests have exactly the columns of the table."""
    assert set(arrow_schema(LATENCY_1M).names) == set(latency_row(END, [0.1]))
