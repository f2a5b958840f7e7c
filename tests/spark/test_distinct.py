"""Messages are made distinct by blocks of sequence numbers, with the same result as row by row."""

import random

import pytest

from ackscope.tables import PROBE_MESSAGES
from tests.spark.landing_files import message

pytestmark = pytest.mark.spark


def test_blocks_find_every_duplicate(spark):
    """Copies in one block, on both sides of a block's edge, of other channels, and rows that differ: one a key."""
    from pipeline.schema import spark_schema
    from pipeline.transforms.common import MESSAGE, distinct_messages, distinct_rows

    dice = random.Random(11)
    kinds = [{"stream": stream, "epoch": epoch} for stream in ("classic", "quorum") for epoch in (1, 2)]
    rows = [
        message(seq, seq % 1000, **kind) for kind in kinds for seq in (*range(1, 300), 2**40, 2**40 + 63, 2**40 + 64)
    ]
    copies = [dice.choice(rows) for _ in range(40)]
    changed = [row | {"outcome": "lost", "confirm": None} for row in dice.sample(rows, 10)]
    edges = [row for row in rows if row["seq"] in {63, 64, 65, 127, 128, 2**40}]
    landed = [*rows, *copies, *changed, *edges]
    dice.shuffle(landed)
    names = list(PROBE_MESSAGES.names)
    frame = spark.createDataFrame([tuple(row[name] for name in names) for row in landed], spark_schema(PROBE_MESSAGES))

    found = distinct_messages(frame).select(*names).collect()

    expected = distinct_rows(frame, (*MESSAGE, "intended_at")).select(*names).collect()
    assert len(rows) == len(found)
    assert sorted(map(str, expected)) == sorted(map(str, found))
