"""What the rollups say, against a second computation in plain Python."""

import math

import pytest

from ackscope import latency
from ackscope.clock import SystemClock
from ackscope.tables import (
    ACK_BURSTS,
    BURSTS_1M,
    CHANNEL_SAMPLES,
    CHANNELS_1M,
    CONSUMER_SAMPLES,
    CONSUMERS_1M,
    LATENCY_1M,
    NODE_SAMPLES,
    NODES_1M,
    OUTCOMES_1M,
    POLL_SAMPLES,
    POLLS_1M,
    PROBE_MESSAGES,
    PROBE_STEPS,
    QUEUE_SAMPLES,
    QUEUES_1M,
    STEPS_1M,
)
from pipeline import jobs
from tests.spark import golden, golden_samples
from tests.spark.landing_files import burst, message, sample, write, write_random

pytestmark = pytest.mark.spark


def _ordered(rows, table):
    return sorted(rows, key=lambda row: tuple(row[name] for name in table.key))


def test_agrees_with_plain_python(session, rolled, tmp_path):
    """Random rows over an hour's edge roll up to what a walk through them in Python gives."""
    made = write_random(tmp_path / "landing", seed=7)

    jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)

    for table, expected in (
        (LATENCY_1M, golden.latency_1m(made[PROBE_MESSAGES])),
        (OUTCOMES_1M, golden.outcomes_1m(made[PROBE_MESSAGES])),
        (BURSTS_1M, golden.bursts_1m(made[ACK_BURSTS])),
        (STEPS_1M, golden.steps_1m(made[PROBE_STEPS])),
        (QUEUES_1M, golden_samples.queues_1m(made[QUEUE_SAMPLES], made[POLL_SAMPLES])),
        (CHANNELS_1M, golden_samples.channels_1m(made[CHANNEL_SAMPLES], made[POLL_SAMPLES])),
        (CONSUMERS_1M, golden_samples.consumers_1m(made[CONSUMER_SAMPLES], made[POLL_SAMPLES])),
        (NODES_1M, golden_samples.nodes_1m(made[NODE_SAMPLES])),
        (POLLS_1M, golden_samples.polls_1m(made[POLL_SAMPLES])),
    ):
        found = _ordered(rolled(tmp_path / "rollups", table), table)

        assert len(expected) == len(found)
        assert _ordered(expected, table) == found


def test_buckets_are_those_of_the_kernel(spark):
    """Spark and the kernel put a duration into the same bucket, on and next to every edge."""
    from pipeline.transforms.latency import bucket

    values = [0.0, 1e9]
    for edge in latency.EDGES:
        values += [math.nextafter(edge, 0.0), edge, math.nextafter(edge, math.inf)]
    frame = spark.createDataFrame([(value,) for value in values], "seconds double")

    found = frame.selectExpr("seconds", f"{bucket('seconds')} AS bucket").collect()

    assert [(value, latency.bucket(value)) for value in values] == [tuple(row) for row in found]


def test_counts_a_copied_file_once(session, rolled, fingerprint, tmp_path):
    """A landing file that was copied, and a row that was landed again and changed, count once."""
    once, twice = tmp_path / "once", tmp_path / "twice"
    for landing in (once, twice):
        write(landing, PROBE_MESSAGES, [message(seq, seq) for seq in range(50)], "a")
        write(landing, ACK_BURSTS, [burst(second) for second in range(50)], "a")
        write(landing, QUEUE_SAMPLES, [sample(second, publish=second) for second in range(0, 50, 5)], "a")
    for path in twice.rglob("a.parquet"):
        path.with_name("b.parquet").write_bytes(path.read_bytes())
    write(twice, PROBE_MESSAGES, [message(3, 3, outcome="acked", confirm=0.001)], "late")

    for landing in (once, twice):
        jobs.run(landing, tmp_path / f"{landing.name}-rolled", session, SystemClock(), minutes_only=True)

    assert fingerprint(tmp_path / "once-rolled") == fingerprint(tmp_path / "twice-rolled")
    assert [50] == [row["messages"] for row in rolled(tmp_path / "twice-rolled", OUTCOMES_1M)]


def test_counters_that_fall_began_again(session, rolled, tmp_path):
    """After a reset the new value counts; a first value counts only if other statistics are known."""
    counts = [
        (0, {"publish": 1000}),  # nothing is known of before
        (10, {"publish": 1010, "redeliver": None}),
        (20, {"publish": 4, "redeliver": 7}),  # restarted; seven redeliveries, the first ever
        (60, {"publish": 9, "redeliver": 7}),
        (70, {}),  # not reported
        (80, {"publish": 10, "redeliver": 8}),
        (3600, {"publish": 500, "redeliver": 9}),  # after a long silence
        (3610, {"publish": 503, "redeliver": 9}),
    ]
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(second, **given) for second, given in counts], "a")

    jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)
    rows = rolled(tmp_path / "rollups", QUEUES_1M)

    assert [19, 1, 3] == [row["published"] for row in rows]
    assert [7, 1, 0] == [row["redelivered"] for row in rows]
    assert [None, None, None] == [row["delivered"] for row in rows]


def test_increases_over_midnight_are_retained(session, rolled, tmp_path):
    """The last sample of a day, in another folder, is where an increase starts that lies in both days."""
    late = 12 * 3600 - 5
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(late - 5, publish=1), sample(late, publish=10)], "a")
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(late + 10, publish=25)], "b")

    jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)

    assert [9 + 7, 8] == [row["published"] for row in rolled(tmp_path / "rollups", QUEUES_1M)]


def test_rows_that_cannot_be_meant_are_counted_apart(session, rolled, tmp_path):
    """A row a few hours off its folder's date counts; one of another year does not, and is reported."""
    write(
        tmp_path / "landing",
        PROBE_MESSAGES,
        [message(1, 0), message(2, 20 * 3600), message(3, -300 * 86400), message(4, 70 * 365 * 86400)],
        "a",
    )

    summary = jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)

    assert (2, 2) == (summary.landing_rows, summary.misdated_rows)
    assert [1, 1] == [row["messages"] for row in rolled(tmp_path / "rollups", OUTCOMES_1M)]
