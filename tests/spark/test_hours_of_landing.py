"""Minutes of what was landed, and hours of those minutes, table by table."""

import random

import pyarrow as pa
import pytest

from ackscope.tables import CHANNEL_SAMPLES, CONSUMER_SAMPLES, HOURS, NODE_SAMPLES, POLL_SAMPLES, QUEUE_SAMPLES
from ackscope.tables.arrow import arrow_schema
from tests.spark import golden, golden_merging, golden_samples
from tests.spark.conftest import built
from tests.spark.landing_files import TABLES

pytestmark = pytest.mark.spark


@pytest.fixture
def landed():
    """Random rows of each landing table over an hour's edge."""
    dice = random.Random("hours")
    return {table: make(dice, 1800.0, 3600.0) for table, make in TABLES.items()}


def golden_minutes(landed):
    """All tables of minutes, in plain Python."""
    messages, bursts, steps, _, polls, *_ = landed.values()
    return {
        "latency_1m": golden.latency_1m(messages),
        "outcomes_1m": golden.outcomes_1m(messages),
        "bursts_1m": golden.bursts_1m(bursts),
        "steps_1m": golden.steps_1m(steps),
        "queues_1m": golden_samples.queues_1m(landed[QUEUE_SAMPLES], polls),
        "channels_1m": golden_samples.channels_1m(landed[CHANNEL_SAMPLES], polls),
        "consumers_1m": golden_samples.consumers_1m(landed[CONSUMER_SAMPLES], polls),
        "nodes_1m": golden_samples.nodes_1m(landed[NODE_SAMPLES]),
        "polls_1m": golden_samples.polls_1m(landed[POLL_SAMPLES]),
    }


def ordered(rows, table):
    """In the order of the key."""
    return sorted(rows, key=lambda row: tuple(row[name] for name in table.key))


def test_every_table_agrees_with_plain_python(spark, landed):
    """Minutes made of what was landed, and hours made of them: row by row, to the last bit."""
    from pipeline.transforms import TRANSFORMS
    from pipeline.transforms.merging import downsampled

    expected = golden_minutes(landed)

    for transform in TRANSFORMS:
        table, hourly = transform.rollup, HOURS[transform.rollup.name]
        minutes = built(spark, transform, landed)
        rows = minutes.toArrow().to_pylist()
        hours = downsampled(pa.Table.from_pylist(rows, schema=arrow_schema(table)), table, hourly).to_pylist()

        assert rows
        assert ordered(expected[table.name], table) == ordered(rows, table), table.name
        merged_rows = golden_merging.merged(expected[table.name], table, hourly)
        assert ordered(merged_rows, hourly) == ordered(hours, hourly), hourly.name
