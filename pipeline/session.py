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
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # ships no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ackscope.errors import MissingPart, UsageError
from ackscope.log import get_logger
from pipeline.java import require_java

log = get_logger(__name__)

# What a call into Spark may raise; `ConnectionError` if Java is gone.
SPARK_ERRORS = (Py4JError, PySparkException, ConnectionError)

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception): ")
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|(spark|k8s)://\S+|yarn")
# Prefixes of lines that are logged as warnings.
_WARNING_PREFIXES = ("WARN ", "ERROR ", "FATAL ", "Exception in ", "Terminating due to ")

_COMPILE_ALL = "-XX:-DontCompileHugeMethods"

# Time that Java gets to exit by itself.
_EXIT_SECONDS = 10.0


def check_master(master: str) -> str:
    """Validate a Spark master.

    Raises:
        UsageError: Spark does not know it.
    """
    if not _MASTER.fullmatch(master):
        raise UsageError(
            f"--master {master!r} is not a Spark master; use local[2], local[*], spark://HOST:7077, yarn or k8s://..."
        )
    return master


@contextmanager
def spark_session(master: str = "local[2]", *, long_lived: bool = False) -> Iterator[SparkSession]:
    """Start Java and a Spark session; both have ended after the block.

    A `long_lived` session runs small jobs repeatedly, so its JIT compiler is limited to cheap optimisations.

    Java runs in its own process session, so that a Ctrl-C of the terminal or a SIGTERM to the process group reaches
    only Python, which shuts Java down cleanly. If Python is killed, Java's stdin closes and Java exits.

    Raises:
        MissingPart: no usable Java, or Spark does not start.
        UsageError: an unknown master.
    """
    check_master(master)
    require_java()
    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # They log tracebacks of errors that they raise anyway.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_py4j)
    # Workers use the same Python: a bare `python3` may lack Arrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with as_file(files("pipeline") / "log4j2.properties") as log4j:
        conf = SparkConf().setAll(list(_settings(master, log4j, long_lived=long_lived).items()))
        gateway, java_log = _launch(conf)
        try:
            yield _session(conf, gateway)
        finally:
            java_log.mute()
            _stop(gateway)
            java_log.join()


def cause(error: BaseException) -> str:
    """The line of a Spark error that says what happened."""
    if isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError):
        return "its Java process is gone; check the kernel log for an out-of-memory kill"
    text = str(getattr(error, "java_exception", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in reversed(lines) if line.startswith("Caused by:")), lines[0] if lines else "")
    if chosen.endswith("Python worker:"):
        # What the function in the worker raised, in the last line of its traceback.
        chosen = next((line for line in reversed(lines) if _RAISED.match(line)), chosen)
    return chosen.removeprefix("Caused by:").strip() or type(error).__name__


def _not_py4j(record: logging.LogRecord) -> bool:
    """Drop py4j's tracebacks, some of which go to the root logger."""
    return "py4j" not in Path(record.pathname).parts


class _JavaLog(threading.Thread):
    """Reads what Java prints and logs warnings, one line each.

    Attributes:
        last: the last line that was not empty.
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
        self.last = line or self.last
        is_warning = not self._muted and line.startswith(_WARNING_PREFIXES)
        (log.warning if is_warning else log.debug)("spark", line=line)


def _settings(master: str, log4j: Path, *, long_lived: bool) -> dict[str, str]:
    java = " ".join(
        [
            f'"-Dlog4j2.configurationFile={log4j.as_uri()}"',
            "-Duser.timezone=UTC",
            # Serial GC needs the least memory, and is as fast as others with a heap of 1 GiB and two cores.
            "-XX:+UseSerialGC",
            # Java interprets methods above 8,000 bytes, and Spark generates such methods.
            _COMPILE_ALL,
            # After an out-of-memory error Spark loses threads and hangs.
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+DisplayVMOutputToStderr",
            *(["-XX:TieredStopAtLevel=1"] if long_lived else []),
        ]
    )
    settings = {
        "spark.master": master,
        "spark.app.name": "ackscope",
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": java,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # These lists are for the UI, which is off; in a stream they would grow for days.
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.session.timeZone": "UTC",
        # All tables together need some hundreds of generated classes repeatedly; with the default of 100, every round
        # would recompile them. Nor may the order in which parts of a query end create a different class.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.codegen.useIdInClassName": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # Landing files are many and small: pack them into few tasks, and list them in the driver.
        "spark.sql.files.openCostInBytes": "65536",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # For each file: no lookup of a checksum file, no predicate pushdown, and no memory for rows that it does not
        # have.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.parquet.filterPushdown": "false",
        "spark.sql.parquet.columnarReaderBatchSize": "1024",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        # The same type as the exporter writes: others read Spark's legacy timestamps as local time.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        # Executors of a cluster; there are none locally.
        "spark.executor.memory": "1g",
        "spark.executor.defaultJavaOptions": f"-Duser.timezone=UTC {_COMPILE_ALL}",
    }
    if _is_local(master):
        # Both are needed: results over 1 MB are otherwise fetched from the external address, where nothing listens.
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


def _is_local(master: str) -> bool:
    """Whether everything runs on this machine, so that loopback is enough."""
    if master.startswith("local"):
        return True
    return master.startswith("spark://") and _LOOPBACK.fullmatch(urlsplit(master).hostname or "") is not None


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
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.getOrCreate()
    except SPARK_ERRORS as error:
        master = conf.get("spark.master")
        raise MissingPart(f"Spark did not start with --master {master}, check that it is up: {cause(error)}") from None
    finally:
        if threading.current_thread() is threading.main_thread():
            # The context installs its own SIGINT handler; restore ours.
            signal.signal(signal.SIGINT, interrupt)


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
