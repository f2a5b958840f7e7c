"""The line of a Spark error that says what happened."""

import pytest
from py4j.protocol import Py4JJavaError

from ackscope.errors import DataError
from ackscope.object_path import ObjectStorageError
from pipeline.session import JobError, cause, job_failure

AWAIT = "org.apache.spark.SparkException: Exception thrown in awaitResult:"
WORKER = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 7.0 failed 1 times\n"
    "Caused by: org.apache.spark.api.python.PythonException: An exception was thrown from the Python worker:\n"
    "Traceback (most recent call last):\n"
    '  File "frames.py", line 7, in read\n'
    "ackscope.object_path.ObjectStorageError: s3://b/x.parquet: error sending request\n"
)
FETCH = "java.nio.channels.ClosedByInterruptException"


class _Thrown:
    """A Java exception with its causes."""

    def __init__(self, text, *causes):
        self._text, self._causes = text, causes

    def __str__(self):
        return self._text

    def getCause(self):  # noqa: N802
        return _Thrown(*self._causes) if self._causes else None


def spark_error(*texts):
    """A Spark error that holds these exceptions, each the cause of the one before."""
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = _Thrown(*texts)
    return error


def test_what_a_task_raised_is_found_below_what_spark_wraps_around_it():
    """`awaitResult` alone says nothing."""
    assert FETCH == cause(spark_error(AWAIT, "java.io.IOException: a block is gone", FETCH))
    assert "org.apache.spark.SparkException: Exception thrown in awaitResult:" == cause(spark_error(AWAIT))


@pytest.mark.parametrize("texts", [(WORKER,), (AWAIT, WORKER), (AWAIT, "java.lang.RuntimeException: x", WORKER)])
def test_storage_that_an_executor_could_not_use_is_no_failed_job(texts):
    """However deep Spark hides it: the storage may be back by now."""
    found = job_failure(spark_error(*texts), "latency_1m could not be computed", "s3://b/landing")

    assert isinstance(found, ObjectStorageError)
    assert "s3://b/landing: s3://b/x.parquet: error sending request" == str(found)


def test_a_job_whose_java_is_gone_cannot_be_repeated():
    """Every further attempt would fail at once."""
    found = job_failure(ConnectionRefusedError(), "latency_1m could not be computed", "s3://b/landing")

    assert DataError is type(found)
    assert "Java process is gone" in str(found)


def test_another_failure_says_what_failed_and_why():
    """In one line."""
    found = job_failure(spark_error(AWAIT, FETCH), "latency_1m could not be computed", "s3://b/landing")

    assert isinstance(found, JobError)
    assert f"latency_1m could not be computed: {FETCH}" == str(found)
