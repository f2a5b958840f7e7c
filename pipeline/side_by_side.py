"""Work on several clusters at the same time: they share nothing, and the jobs of one fill the gaps of another."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")

# Clusters at the same time, for each core of Spark: one computes while the driver plans and commits another.
_PER_CORE = 2

# Limit, because each cluster in work holds its listing of landing in the driver.
_MOST = 16


def side_by_side(
    spark: SparkSession, clusters: Iterable[str], work: Callable[[str], T], at_once: int | None = None
) -> list[T]:
    """Call `work` for each cluster and return the results in the order of the clusters.

    After an error no further cluster is begun, those that were begun end, and the first error is raised.

    Args:
        spark: its cores decide how many clusters are worked on at once.
        clusters: in the order in which they begin.
        work: called in threads, unless there is only one cluster.
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
