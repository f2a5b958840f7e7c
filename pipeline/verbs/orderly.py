"""The end of a job that is told to stop: Spark is cut off, the lock goes, one line says what to do about the rest."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from pyspark.sql import SparkSession

from ackscope.errors import AckscopeError, DataError
from pipeline.jobs import Session
from pipeline.session import SPARK_ERRORS
from pipeline.stop import Stop, StoppedError

_LOOK = 0.1
"""Seconds between two looks at the wish to stop."""


@contextmanager
def orderly(session: Callable[[], AbstractContextManager[SparkSession]], rest: str) -> Iterator[tuple[Stop, Session]]:
    """For the length of a job: SIGTERM and SIGINT become a wish to stop, and cut off what Spark is at.

    Args:
        session: starts Spark.
        rest: what is whole, and what to run for the rest.

    Raises:
        DataError: it was told to stop; `rest` is in its message.
    """
    stop = Stop()
    stop.listen()
    try:
        yield stop, lambda: _cut_off(session, stop)
        stop.check()
    except (StoppedError, AckscopeError, KeyboardInterrupt, *SPARK_ERRORS) as error:
        # For a moment of its start, Spark takes Ctrl-C for itself.
        if stop.wanted or isinstance(error, KeyboardInterrupt):
            raise DataError(f"stopped before the end; {rest}") from None
        raise


@contextmanager
def _cut_off(session: Callable[[], AbstractContextManager[SparkSession]], stop: Stop) -> Iterator[SparkSession]:
    stop.check()
    with session() as spark:
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(spark, stop, over), name="stop", daemon=True)
        watch.start()
        try:
            stop.check()
            yield spark
        finally:
            over.set()
            watch.join()


def _watch(spark: SparkSession, stop: Stop, over: threading.Event) -> None:
    while not over.wait(_LOOK):
        if stop.wanted:
            with suppress(*SPARK_ERRORS):
                # What it says of jobs that are cut off is no news.
                spark.sparkContext.setLogLevel("OFF")
                # Again and again: between two of its jobs there is nothing to cancel.
                spark.sparkContext.cancelAllJobs()
