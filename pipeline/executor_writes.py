"""Write data files where their rows are computed: an executor sorts, digests and writes, and the driver commits.

Rows are shuffled so that each file has a task of its own. The driver gets path, number of rows and digests, never rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.errors import DataError
from ackscope.object_path import ObjectStorageError
from ackscope.tables import BASELINES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR
from pipeline.side_by_side import side_by_side
from pipeline.spark_settings import is_one_process
from pipeline.stop import StoppedError
from pipeline.storage.data_file_writer import FilePlan, WrittenFile, encoded, write_file
from pipeline.storage.row_order import sort_by_time
from pipeline.storage.store import FileStore
from pipeline.work_ranges import MAX_COLLECTED_ROWS, MAX_LANDING_ROWS, MAX_LANDING_ROWS_IN_CLUSTER

# In a single process, the rows of one job are collected and written by the driver if its heap has room for them:
# another shuffle and Python workers take up to a second of CPU a file more. In a cluster no rows are collected.
COLLECTED_ROWS, COLLECTED_ROWS_IN_CLUSTER = MAX_COLLECTED_ROWS, -1

# Tasks of a job that writes files without a query.
_TASKS_PER_CORE = 8

_PLAN = "_plan"
_RESULT = "plan INT, document BINARY"


@dataclass(frozen=True, slots=True)
class _PlanWriter:
    """The function that an executor applies to the rows of its plans."""

    store: FileStore
    plans: tuple[FilePlan, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return
        rows = pa.Table.from_batches(found)
        del found
        numbers = sorted(pc.unique(rows[_PLAN]).to_pylist())
        for number in numbers:
            mine = rows if len(numbers) == 1 else rows.filter(pc.equal(rows[_PLAN], number))
            plan = self.plans[number]
            document = _document(partial(write_file, self.store, plan, sort_by_time(plan.table, mine)))
            yield pa.RecordBatch.from_pydict(
                {"plan": pa.array([number], pa.int32()), "document": pa.array([document], pa.binary())}
            )


def _document(write: Callable[[], WrittenFile]) -> bytes:
    """The report of an executor on a file: what it has written, or why it could not."""
    try:
        return orjson.dumps(encoded(write()))
    except DataError as error:
        # A full disk is not worth the retries of a failed task, and has a line of its own.
        where = error.filename if isinstance(error, ObjectStorageError) else ""
        return orjson.dumps(
            {"error": error.strerror if isinstance(error, ObjectStorageError) else str(error), "storage": where}
        )


def _written(document: bytes) -> WrittenFile:
    """The file of a report; raises its error."""
    report = orjson.loads(document)
    if "error" in report:
        storage, error = report["storage"], report["error"]
        raise ObjectStorageError(storage, error) if storage else DataError(error)
    return WrittenFile(**report)


def is_collected(spark: SparkSession, rows: float) -> bool:
    """Whether so many rows are collected and written by the driver."""
    limit = COLLECTED_ROWS if is_one_process(str(spark.sparkContext.master)) else COLLECTED_ROWS_IN_CLUSTER
    return rows <= limit


def landing_rows(spark: SparkSession) -> int:
    """Landing rows that one commit reads."""
    return MAX_LANDING_ROWS if is_collected(spark, 0) else MAX_LANDING_ROWS_IN_CLUSTER


def write_files(
    frame: DataFrame, plans: Sequence[FilePlan], store: FileStore, scope: Sequence[str] = ()
) -> list[WrittenFile]:
    """Write the files of these plans with the rows of a frame, in the order of the plans; other rows are ignored.

    Args:
        frame: rows of the plans' table.
        plans: of one table; those of one cluster with hours apart.
        store: where; sent to the executors.
        scope: `side_by_side.scope_of` the clusters of the plans; the frame has its columns.

    Raises:
        DataError: a file cannot be read or written.
        ObjectStorageError: the storage cannot be used.
        SPARK_ERRORS: the frame cannot be computed.
    """
    if not plans:
        return []
    spark, table = frame.sparkSession, plans[0].table
    # A joined table, because constants in generated code would compile it again each time.
    places = {
        "_hour": pa.array([hour for plan in plans for hour in plan.hours], pa.int64()),
        _PLAN: pa.array([number for number, plan in enumerate(plans) for _ in plan.hours], pa.int32()),
        **{name: pa.array([plan.cluster for plan in plans for _ in plan.hours], pa.string()) for name in scope},
    }
    placed = frame.select(*scope, *table.names, _hour(table).alias("_hour")).join(
        F.broadcast(spark.createDataFrame(pa.table(places))), [*scope, "_hour"]
    )
    # Rows computed together with those of other clusters are few: a task for each core is enough, and costs less.
    tasks = min(len(plans), spark.sparkContext.defaultParallelism) if scope else len(plans)
    task = F.col(_PLAN) % tasks if tasks < len(plans) else F.col(_PLAN)
    shuffled = placed.drop("_hour", *scope).repartitionById(tasks, task)
    found = shuffled.mapInArrow(_PlanWriter(store, tuple(plans)), _RESULT).toArrow().to_pylist()
    files = {it["plan"]: _written(it["document"]) for it in found}
    return [
        # Plans without rows have no task. What is left of their file is little work.
        files[number] if number in files else write_file(store, plan, arrow_schema(table).empty_table())
        for number, plan in enumerate(plans)
    ]


class FileMaker(Protocol):
    """A file that needs no rows of a query; it is sent to an executor."""

    @property
    def rows(self) -> int:
        """Rows that it reads."""
        ...

    def __call__(self) -> WrittenFile:
        """Write it."""
        ...


def write_each(spark: SparkSession, files: Sequence[FileMaker], go_on: Callable[[], bool]) -> list[WrittenFile]:
    """Write these files, in a cluster each by an executor; return them in this order.

    A job without a query: the driver sends what is to be done, and plans nothing.

    Raises:
        DataError: a file cannot be read or written.
        StoppedError: `go_on` returned False.
        SPARK_ERRORS: the job failed.
    """
    context = spark.sparkContext
    if is_collected(spark, 0):

        def write(file: FileMaker) -> WrittenFile:
            if not go_on():
                raise StoppedError
            return file()

        return side_by_side(spark, files, write, context.defaultParallelism)
    # The largest first, dealt in turn, so that all executors end at about the same time.
    order = sorted(range(len(files)), key=lambda number: -files[number].rows)
    tasks = min(len(files), _TASKS_PER_CORE * context.defaultParallelism)
    dealt = [[(number, files[number]) for number in order[first::tasks]] for first in range(tasks)]
    found = dict(pair for pairs in context.parallelize(dealt, tasks).map(_documents).collect() for pair in pairs)
    return [_written(found[number]) for number in range(len(files))]


def _documents(files: Sequence[tuple[int, FileMaker]]) -> list[tuple[int, bytes]]:
    return [(number, _document(file)) for number, file in files]


def _hour(table: Table) -> Column:
    if table.name == BASELINES.name:
        return F.col("hour_of_week")
    return F.floor(F.unix_micros(table.time) / (HOUR * 1_000_000))
