"""Work on several clusters at the same time.

Small clusters are computed together, by the same queries: planning a query takes Spark as long for one cluster as for
many. Groups of clusters are worked on side by side: they share nothing, and the jobs of one fill the gaps of another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

S = TypeVar("S")
T = TypeVar("T")

# Clusters at the same time, for each core of Spark: one computes while the driver plans and commits another.
_PER_CORE = 2

# Limit, because each cluster in work holds its listing of landing in the driver.
_MOST = 16

# The column that tells clusters apart where rows of several are computed together; no table has it.
CLUSTER = "cluster"

# Clusters that are computed together: all of them wait for one another, and for the locks of all.
TOGETHER = 16


def together(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Group clusters that are computed together, in the order of their names.

    Args:
        sizes: rows of each cluster.
        most: rows of a group; a cluster with more is alone.
    """
    group: list[str] = []
    for cluster in sorted(sizes):
        if group and (len(group) >= TOGETHER or sizes[cluster] + sum(sizes[it] for it in group) > most):
            yield group
            group = []
        group.append(cluster)
    if group:
        yield group


def scope_of(group: Sized) -> tuple[str, ...]:
    """The columns that are part of every key where the clusters of a group are computed together; none for one."""
    return (CLUSTER,) if len(group) > 1 else ()


def rows_of(rows: pa.Table, cluster: str) -> pa.Table:
    """Of rows with a column `CLUSTER`, those of one cluster, without it; all rows if there is no such column."""
    if CLUSTER not in rows.column_names:
        return rows
    return rows.filter(pc.equal(rows[CLUSTER], cluster)).drop_columns([CLUSTER])


def side_by_side(
    spark: SparkSession, clusters: Iterable[S], work: Callable[[S], T], at_once: int | None = None
) -> list[T]:
    """Call `work` for each cluster, or group of them, and return the results in their order.

    After an error nothing further is begun, what was begun ends, and the first error is raised.

    Args:
        spark: its cores decide how many are worked on at once.
        clusters: clusters or groups, in the order in which they begin.
        work: called in threads, unless there is only one.
        at_once: at most so many; None: as many as suit the cores.
    """
    names = list(clusters)
    if len(names) <= 1 or at_once == 1:
        return [work(name) for name in names]
    threads = min(len(names), at_once or _PER_CORE * spark.sparkContext.defaultParallelism, _MOST)
    with ThreadPoolExecutor(threads, "cluster") as pool:
        results = [pool.submit(work, name) for name in names]
        done, waiting = wait(results, return_when=FIRST_EXCEPTION)
        for it in waiting:
            it.cancel()
    # The first that failed, in the order of time as far as it is known.
    for it in (*done, *waiting):
        if not it.cancelled():
            it.result()
    return [it.result() for it in results]
