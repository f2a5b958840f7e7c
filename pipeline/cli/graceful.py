"""The end of a job that is told to stop: Spark is cut off, the lock goes, one line says what to do about the rest."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from pyspark.sql import SparkSession

from ackscope.errors import AckscopeError, DataError
from pipeline.jobs import SessionFactory
from pipeline.session import SPARK_ERRORS
from pipeline.stop import Stop, StoppedError

_POLL_SECONDS = 0.1
"""Seconds between two looks at the wish to stop."""


@contextmanager
def graceful(
    session: Callable[[], AbstractContextManager[SparkSession]], resume_hint: str
) -> Iterator[tuple[Stop, SessionFactory]]:
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
        yield stop, lambda: _cancellable(session, stop)
        stop.check()
    except (StoppedError, AckscopeError, KeyboardInterrupt, *SPARK_ERRORS) as error:
        # For a moment of its start, Spark takes Ctrl-C for itself.
        if stop.requested or isinstance(error, KeyboardInterrupt):
            raise DataError(f"stopped before the end; {resume_hint}") from None
        raise


@contextmanager
def _cancellable(session: Callable[[], AbstractContextManager[SparkSession]], stop: Stop) -> Iterator[SparkSession]:
    stop.check()
    with session() as spark:
        finished = threading.Event()
        watcher = threading.Thread(target=_cancel_on_stop, args=(spark, stop, finished), name="stop", daemon=True)
        watcher.start()
        try:
            stop.check()
            yield spark
        finally:
            finished.set()
            watcher.join()


def _cancel_on_stop(spark: SparkSession, stop: Stop, finished: threading.Event) -> None:
    while not finished.wait(_POLL_SECONDS):
        if stop.requested:
            with suppress(*SPARK_ERRORS):
                # What it says of jobs that are cut off is no news.
                spark.sparkContext.setLogLevel("OFF")
                # Again and again: between two of its jobs there is nothing to cancel.
                spark.sparkContext.cancelAllJobs()
