"""Graceful shutdown of a job: cancel Spark, release the lock, and say in one line how to continue."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from pyspark.sql import SparkSession

from ackscope.errors import AckscopeError, DataError
from pipeline.jobs import SessionFactory
from pipeline.session import SPARK_ERRORS
from pipeline.stop import Stop, StoppedError

# Interval at which a stop request is noticed.
_POLL_SECONDS = 0.1


@contextmanager
def graceful(
    session: Callable[[], AbstractContextManager[SparkSession]], resume_hint: str
) -> Iterator[tuple[Stop, SessionFactory]]:
    """Run a job so that SIGTERM and SIGINT request a stop and cancel running Spark jobs.

    Args:
        session: starts Spark.
        resume_hint: what is complete, and what to run for the rest.

    Raises:
        DataError: a stop was requested; the message contains `resume_hint`.
    """
    stop = Stop()
    stop.listen()
    try:
        yield stop, lambda: _cancellable(session, stop)
        stop.check()
    except (StoppedError, AckscopeError, KeyboardInterrupt, *SPARK_ERRORS) as error:
        # While it starts, Spark handles Ctrl-C itself.
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
                # Errors of cancelled jobs are expected.
                spark.sparkContext.setLogLevel("OFF")
                # Repeated, because between two Spark jobs there is nothing to cancel.
                spark.sparkContext.cancelAllJobs()
