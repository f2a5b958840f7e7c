"""The Spark session: its settings, its Java process, and a clean start and shutdown."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # ships no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ackscope import __version__
from ackscope.errors import DataError, MissingPart
from ackscope.log import get_logger
from ackscope.object_path import ObjectStorageError
from pipeline.java import require_java
from pipeline.spark_settings import (
    DEFAULT_MASTER,
    MASTER,
    REQUIRED,
    check_master,
    check_same_master,
    configured,
    default_settings,
    driver_settings,
    is_local,
    is_one_process,
)

log = get_logger(__name__)


class JobError(DataError):
    """A Spark job failed although no file is damaged, for example because a worker ended."""


OLDEST_SPARK = (4, 3)
"""Oldest version of Spark that the jobs run with."""

# What a call into Spark may raise; `ConnectionError` if Java is gone.
SPARK_ERRORS = (Py4JError, PySparkException, ConnectionError)

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception): ")
# Prefixes of lines that are logged as warnings.
_WARNING_PREFIXES = ("WARN ", "ERROR ", "FATAL ", "Exception in ", "Terminating due to ")

# Time that Java gets to exit by itself.
_EXIT_SECONDS = 10.0


@contextmanager
def spark_session(master: str | None = None, *, long_lived: bool = False) -> Iterator[SparkSession]:
    """Start Java and a Spark session; both have ended after the block.

    Java runs in its own process session, so that a Ctrl-C of the terminal or a SIGTERM to the process group reaches
    only Python, which shuts Java down cleanly. If Python is killed, Java's stdin closes and Java exits.

    If spark-submit has started this process, Java is there already, with the master and the settings of spark-submit.
    Only the session ends then.

    Args:
        master: of `--master`; None: that of spark-submit or `spark-defaults.conf`, otherwise `local[2]`.
        long_lived: it runs small jobs repeatedly, so its JIT compiler is limited to cheap optimisations.

    Raises:
        MissingPart: no usable Java, Spark does not start, or the executors do not have ackscope.
        UsageError: an unknown master, or another one than that of spark-submit.
    """
    check_master(master)
    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # They log tracebacks of errors that they raise anyway.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_py4j)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Workers use the same Python: a bare `python3` may lack Arrow.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # PySpark keeps the gateway for the life of the process.
        gateway: Any = SparkContext._gateway or launch_gateway()  # type: ignore[no-untyped-call]  # noqa: SLF001
        conf = SparkConf(_jvm=gateway.jvm)
        check_same_master(master, conf.get(MASTER) or "")
        spark = _session(_with_ours(conf), gateway)
        try:
            _check_executors(spark)
            yield spark
        finally:
            with suppress(*SPARK_ERRORS, OSError):
                spark.stop()
        return
    require_java()
    known = configured()
    chosen = master or known.get(MASTER, DEFAULT_MASTER)
    os.environ.setdefault("PYSPARK_PYTHON", known.get("spark.pyspark.python", sys.executable))
    if is_local(chosen):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with as_file(files("pipeline") / "log4j2.properties") as log4j:
        # The driver of a cluster plans, and computes nothing: compiling that well takes longer than it saves.
        cheap_code = long_lived or not is_one_process(chosen)
        defaults = default_settings(chosen) | driver_settings(log4j, known, cheap_code=cheap_code)
        ours = {name: value for name, value in defaults.items() if name not in known} | {MASTER: chosen}
        gateway, java_log = _launch(SparkConf(loadDefaults=False).setAll(list(ours.items())))
        try:
            conf = SparkConf(_jvm=gateway.jvm)
            if master is not None:
                conf.setMaster(master)
            spark = _session(_with_ours(conf), gateway)
            _check_executors(spark)
            yield spark
        finally:
            java_log.mute()
            _stop(gateway)
            java_log.join()


def cause(error: BaseException) -> str:
    """The line of a Spark error that says what happened."""
    if _is_java_gone(error):
        return "its Java process is gone; check the kernel log for an out-of-memory kill"
    lines = [line.strip() for line in _with_causes(error).splitlines() if line.strip()]
    chosen = next((line for line in reversed(lines) if line.startswith("Caused by:")), lines[0] if lines else "")
    if chosen.endswith("Python worker:"):
        # What the function in the worker raised, in the last line of its traceback.
        chosen = next((line for line in reversed(lines) if _RAISED.match(line)), chosen)
    return chosen.removeprefix("Caused by:").strip() or type(error).__name__


def _is_java_gone(error: BaseException) -> bool:
    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def _with_causes(error: BaseException) -> str:
    """The text of a Spark error, and those of its causes: `Exception thrown in awaitResult` alone says nothing."""
    found: list[str] = []
    with suppress(*SPARK_ERRORS):
        java = getattr(error, "java_exception", None)
        while java is not None:
            found.append(str(java))
            java = java.getCause()
    return "\nCaused by: ".join(found) or str(error)


def job_failure(error: BaseException, what: str, storage: str) -> DataError:
    """The error to raise for a Spark job that failed although no file is damaged.

    Args:
        error: what Spark raised.
        what: such as "latency_1m of cluster shop could not be computed".
        storage: where it read.

    Returns:
        `ObjectStorageError` if an executor could not use the storage; it may be back by now. `JobError` if Java still
        runs, so that the job can be repeated.
    """
    said = cause(error)
    _, is_away, reason = said.partition(f"{ObjectStorageError.__name__}: ")
    if is_away:
        return ObjectStorageError(storage, reason)
    return (DataError if _is_java_gone(error) else JobError)(f"{what}: {said}")


def _not_py4j(record: logging.LogRecord) -> bool:
    """Drop py4j's tracebacks, some of which go to the root logger."""
    return "py4j" not in Path(record.pathname).parts


class _JavaLog(threading.Thread):
    """Reads what Java prints and logs warnings, one line each.

    Attributes:
        last: the last line that was not empty, and not a frame of a stack.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(name="java-stderr", daemon=True)
        self._stream = stream
        self._muted = False
        self.last = ""

    def mute(self) -> None:
        """Stop warnings: Java is shutting down."""
        self._muted = True

    def run(self) -> None:
        with self._stream:
            for raw in self._stream:
                self._forward(raw.decode(errors="replace").rstrip())

    def _forward(self, line: str) -> None:
        if line and not line.startswith("\tat "):
            self.last = line
        is_warning = not self._muted and line.startswith(_WARNING_PREFIXES)
        (log.warning if is_warning else log.debug)("spark", line=line)


def _launch(conf: SparkConf) -> tuple[Any, _JavaLog]:
    reading, writing = os.pipe()
    java_log = _JavaLog(os.fdopen(reading, "rb"))
    java_log.start()
    try:
        gateway: Any = launch_gateway(  # type: ignore[no-untyped-call]  # ships no types
            conf, {"stderr": writing, "stdout": subprocess.DEVNULL, "start_new_session": True}
        )
    except SPARK_ERRORS:
        os.close(writing)
        java_log.join()
        raise MissingPart(f"Spark did not start; Java's last output: {java_log.last or 'nothing'}") from None
    os.close(writing)
    return gateway, java_log


def _session(conf: SparkConf, gateway: Any) -> SparkSession:
    _check_version(gateway)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.getOrCreate()
    except SPARK_ERRORS as error:
        master = conf.get(MASTER)
        raise MissingPart(f"Spark did not start with --master {master}, check that it is up: {cause(error)}") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            # The context installs its own SIGINT handler; restore ours.
            signal.signal(signal.SIGINT, interrupt)


def _check_version(gateway: Any) -> None:
    """Refuse a Spark that this ackscope was not made for, which would fail later with errors that do not say why."""
    try:
        java = str(gateway.jvm.org.apache.spark.SparkBuildInfo.spark_version())
    except (*SPARK_ERRORS, TypeError):
        java = "of unknown version"
    if java != pyspark.__version__ or _number(java) < OLDEST_SPARK:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise MissingPart(
            f"Spark is {java} and PySpark is {pyspark.__version__}; ackscope needs both in one version, "
            f"{oldest} or newer: start the job with the spark-submit of ackscope's environment, or unset SPARK_HOME"
        )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _with_ours(conf: SparkConf) -> SparkConf:
    """Add our defaults where nobody has set anything, and what the results depend on."""
    for name, value in default_settings(conf.get(MASTER) or DEFAULT_MASTER).items():
        conf.setIfMissing(name, value)
    for name, value in REQUIRED.items():
        given = conf.get(name, value)
        if given != value:
            log.warning("setting of Spark ignored, because rows depend on it", setting=name, given=given, used=value)
        conf.set(name, value)
    return conf


def _check_executors(spark: SparkSession) -> None:
    """Ask an executor of a cluster for its ackscope, before a job fails with errors that do not say what is missing.

    Raises:
        MissingPart: it has none, or another version.
    """
    if is_one_process(str(spark.sparkContext.master)):
        return
    advice = "install it there, or send an environment that has it (docs/scale.md)"
    python = os.environ["PYSPARK_PYTHON"]
    try:
        (row,) = spark.range(1).mapInArrow(_own_version, "version STRING").collect()
    except SPARK_ERRORS as error:
        raise MissingPart(f"the executors cannot run ackscope with {python}: {cause(error)}; {advice}") from None
    if row.version != __version__:
        raise MissingPart(f"the executors have ackscope {row.version}, the driver has {__version__}; {advice}")


def _own_version(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [__version__]})


def _stop(gateway: Any) -> None:
    """Stop Spark, then Java, and wait until it has exited."""
    with suppress(*SPARK_ERRORS, OSError):
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()
    with suppress(*SPARK_ERRORS, OSError):
        gateway.shutdown()
    # Java exits at this end of file; see PythonGatewayServer in Spark's sources.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    # PySpark caches both for the life of the process, and would reuse the dead ones in the next session.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001  there is no public way
