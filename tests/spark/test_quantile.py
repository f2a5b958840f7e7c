"""Quantiles in Spark equal those of the kernel."""

import random

import pyarrow as pa
import pytest

from ackscope import latency

pytestmark = pytest.mark.spark

SHARES = (0.0, 0.01, 0.5, 0.9, 0.99, 1.0)


def histograms(dice):
    """Sparse and dense ones, of one bucket, of the first and the last, and empty ones; with and without a maximum."""
    for number in range(200):
        filled = dice.choice([0, 1, 2, 10, 48])
        counts = [0] * latency.BUCKETS
        for index in dice.sample(range(latency.BUCKETS), filled):
            counts[index] = dice.choice([1, dice.randrange(1, 10**6)])
        last = max((index for index, count in enumerate(counts) if count), default=None)
        highest = None if last is None else (*latency.EDGES, 100.0)[last]
        yield counts, None if number % 3 == 0 or highest is None else highest * dice.uniform(0.75, 1.0)


def test_agrees_with_the_kernel(spark):
    """Random histograms, at the ends of each and between."""
    from pipeline.transforms.quantile import quantile

    made = list(histograms(random.Random(5)))
    columns = {"number": range(len(made)), "max": [maximum for _, maximum in made]}
    columns |= {name: [counts[index] for counts, _ in made] for index, name in enumerate(latency.COLUMNS)}
    types = [pa.int64(), pa.float64(), *[pa.int64()] * latency.BUCKETS]
    schema = pa.schema(list(zip(columns, types, strict=True)))
    frame = spark.createDataFrame(pa.Table.from_pydict(columns, schema=schema))

    found_rows = frame.select("number", *(quantile(q).alias(str(q)) for q in SHARES)).toArrow().to_pylist()

    for row in found_rows:
        counts, maximum = made[row["number"]]
        for q in SHARES:
            expected, found = latency.quantile(counts, maximum, q), row[str(q)]
            if expected is not None:
                # Java's power differs from C's in the last bit.
                found = pytest.approx(found, rel=1e-13)

            assert expected == found, (row["number"], q)
