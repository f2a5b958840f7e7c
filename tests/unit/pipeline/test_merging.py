"""Hours and days: the same from minutes, from hours, and from what was landed."""

import random
from datetime import timedelta

import pyarrow as pa
import pytest

from ackscope.tables import DAYS, HOURS, LATENCY_1M, MINUTES, QUEUES_1M, Kind, Merge
from ackscope.tables.arrow import arrow_schema
from pipeline.transforms import merging
from tests.spark import golden_merging
from tests.spark.landing_files import at


def downsampled(rows, source, target):
    """Merge rows given as dictionaries."""
    return ordered(
        merging.downsampled(pa.Table.from_pylist(rows, schema=arrow_schema(source)), source, target).to_pylist(), target
    )


def ordered(rows, table):
    """In the order of all that keeps them apart."""
    apart = (*table.key, *(it.name for it in table.columns if it.merge is Merge.SAME))
    return sorted(rows, key=lambda row: tuple(row[name] for name in apart))


def random_minutes(dice, table, count=400):
    """Rows of a table of minutes over two days, with gaps and nulls; each key once."""
    rows = {}
    for _ in range(count):
        row = {it.name: _value(dice, it, table) for it in table.columns}
        rows[tuple(row[name] for name in table.key)] = row
    return list(rows.values())


def _value(dice, column, table):
    if column.name == table.time:
        return at(60 * dice.randrange(2 * 24 * 60))
    if column.name in table.key or column.merge is Merge.SAME:
        return dice.choice([1, 2] if column.kind is Kind.INT else ["a", "b"])
    if column.nullable and dice.random() < 0.4:
        return None
    if column.kind is Kind.FLOAT:
        return round(dice.lognormvariate(-3, 4) * 1e9) / 1e9
    return dice.choice(["x", "y", "z"]) if column.kind is Kind.STRING else dice.randrange(10**9)


@pytest.mark.parametrize("table", MINUTES.values(), ids=MINUTES)
def test_days_of_hours_are_days_of_minutes(table):
    """Random rows: to the last bit, and what a walk through them in Python gives."""
    minutes = random_minutes(random.Random(table.name), table)
    hourly, daily = HOURS[table.name], DAYS[table.name]

    hours = downsampled(minutes, table, hourly)
    days = downsampled(hours, hourly, daily)

    assert ordered(golden_merging.merged(minutes, table, hourly), hourly) == hours
    assert ordered(golden_merging.merged(minutes, table, daily), daily) == days
    assert downsampled(minutes, table, daily) == days


def test_every_value_says_how_it_is_merged():
    """A column without a word would have to be guessed."""
    unsaid = [
        f"{table.name}.{column.name}"
        for table in (*MINUTES.values(), *HOURS.values(), *DAYS.values())
        for column in table.columns
        if column.merge is None and column.name not in table.key
    ]

    assert [] == unsaid


def test_what_is_reported_in_no_minute_is_reported_in_no_hour():
    """Null stays null, and a minute without a value does not hide the last one that has."""
    first = dict.fromkeys(QUEUES_1M.names) | {"minute": at(0), "vhost": "/", "queue": "orders", "samples": 6}
    minutes = [
        first | {"messages_ready_last": 7, "published": 5},
        first | {"minute": at(60), "samples": 0, "published": None},
    ]

    (row,) = downsampled(minutes, QUEUES_1M, HOURS["queues_1m"])

    assert (6, 7, 5, None) == (row["samples"], row["messages_ready_last"], row["published"], row["delivered"])
    assert (2, at(0), at(60)) == (row["minutes"], row["first_minute"], row["last_minute"])


def test_other_buckets_are_not_added():
    """Rows of another version of the bucket edges stay rows of their own."""
    row = {it.name: 1 if it.kind is Kind.INT else 1.0 if it.kind is Kind.FLOAT else "a" for it in LATENCY_1M.columns}
    minutes = [row | {"minute": at(0) + timedelta(minutes=index), "bounds": f"v{index}"} for index in range(2)]

    assert [1, 1] == [row["minutes"] for row in downsampled(minutes, LATENCY_1M, HOURS["latency_1m"])]


def test_a_sum_that_is_too_large_is_an_error():
    """It is not a wrong number."""
    row = dict.fromkeys(QUEUES_1M.names) | {"minute": at(0), "vhost": "/", "queue": "orders", "samples": 6}
    half = 1 << 62

    assert [half] == [it["published"] for it in downsampled([row | {"published": half}], QUEUES_1M, HOURS["queues_1m"])]
    with pytest.raises(pa.ArrowInvalid):
        downsampled(
            [row | {"published": half}, row | {"minute": at(60), "published": half}], QUEUES_1M, HOURS["queues_1m"]
        )
