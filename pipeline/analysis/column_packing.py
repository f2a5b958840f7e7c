"""Pass series from Spark to numpy and back: one row per object, with its values as lists.

Shifts and bands need medians of sliding windows. Spark would sort each window again, as boxed values in lists, which
takes minutes instead of a second in numpy. So Python workers compute them, in batches of many series. This runs once an
hour on few rows, and never on the hot path.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.analysis.noise import Values
from pipeline.analysis.series import OBJECT
from pipeline.schema import spark_schema

# Partitions of the objects, processed independently.
PARTS = 4


@dataclass(frozen=True, slots=True)
class ObjectMatrix:
    """Some objects and their values.

    Attributes:
        columns: `OBJECT`, one list each, in the same order.
        values: by measure, a matrix of objects by time index; NaN if unknown.
    """

    columns: dict[str, list[str]]
    values: dict[str, Values]

    def __len__(self) -> int:
        return len(self.columns["name"])


def analyse(
    frame: DataFrame, place: Column, width: int, table: Table, judge: Callable[[ObjectMatrix], pa.Table]
) -> DataFrame:
    """The rows of `judge`, applied to all objects of a family's frame.

    Args:
        frame: of a family.
        place: the time index of a row, from 0 to before `width`.
        width: number of time indexes.
        table: table of the returned rows.
        judge: takes some objects and returns rows of the table; runs in a Python worker.
    """
    measures = [name for name in frame.columns if name not in ("at", *OBJECT)]
    lists = (
        frame.withColumn("place", place.cast("int"))
        .repartition(PARTS, *OBJECT)
        .groupBy(*OBJECT)
        .agg(
            F.collect_list("place").alias("place"),
            # All lists have the same rows in the same order, so no value may be dropped.
            *(F.collect_list(F.coalesce(name, F.lit(float("nan")))).alias(name) for name in measures),
        )
    )
    schema = arrow_schema(table)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from judge(_unpacked(batch, measures, width)).cast(schema).combine_chunks().to_batches()

    return lists.mapInArrow(work, spark_schema(table))


def _unpacked(batch: pa.RecordBatch, measures: Sequence[str], width: int) -> ObjectMatrix:
    lengths = batch.column("place").value_lengths().to_numpy(zero_copy_only=False)
    rows: npt.NDArray[np.int64] = np.repeat(np.arange(len(batch)), lengths)
    places = batch.column("place").flatten().to_numpy(zero_copy_only=False)
    values = {}
    for name in measures:
        matrix = np.full((len(batch), width), np.nan)
        matrix[rows, places] = batch.column(name).flatten().to_numpy(zero_copy_only=False)
        values[name] = matrix
    return ObjectMatrix({name: batch.column(name).to_pylist() for name in OBJECT}, values)
