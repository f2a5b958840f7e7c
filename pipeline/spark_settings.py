"""Settings of Spark: what the results depend on, our defaults, and what an administrator has set already.

A setting that spark-submit or `spark-defaults.conf` gives wins over a default of ours. What the results depend on is
always ours.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pyspark

from ackscope.errors import UsageError

MASTER = "spark.master"
DEFAULT_MASTER = "local[2]"

REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # With it off, an overflow would be a wrong number instead of an error.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # The same type as the exporter writes: others read Spark's legacy timestamps as local time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that rows depend on; another value would give other rows."""

_MASTERS = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|(spark|k8s)://\S+|yarn")
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
# As Java reads it: a name, then white space, `=` or `:`, then a value; `#` and `!` begin a comment.
_LINE = re.compile(r"\s*(?P<name>[^#!\s=:][^\s=:]*)\s*[=:]?\s*(?P<value>.*?)\s*")

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_COMPILE_ALL = "-XX:-DontCompileHugeMethods"


def check_master(master: str | None) -> str | None:
    """Validate the value of `--master`; None: it was not given.

    Raises:
        UsageError: Spark does not know it.
    """
    if master is not None and not _MASTERS.fullmatch(master):
        raise UsageError(
            f"--master {master!r} is not a Spark master; use local[2], local[*], spark://HOST:7077, yarn or k8s://..."
        )
    return master


def check_same_master(master: str | None, submitted: str) -> None:
    """Under spark-submit, `--master` may only repeat the master of spark-submit.

    Raises:
        UsageError: it names another one.
    """
    if master not in {None, submitted}:
        raise UsageError(
            f"--master {master}: spark-submit has started this job with the master {submitted}; "
            "leave --master out, and pass it to spark-submit"
        )


def is_one_process(master: str) -> bool:
    """Whether the driver is the only executor."""
    return master.startswith("local")


def is_local(master: str) -> bool:
    """Whether everything runs on this machine, so that loopback is enough."""
    if is_one_process(master):
        return True
    return master.startswith("spark://") and _LOOPBACK.fullmatch(urlsplit(master).hostname or "") is not None


def configured(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of `spark-defaults.conf`, where Spark itself looks for it; empty if there is none.

    Raises:
        UsageError: it cannot be read.
    """
    home = environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    path = Path(environ.get("SPARK_CONF_DIR") or Path(home) / "conf") / "spark-defaults.conf"
    try:
        text = path.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); fix it, or set SPARK_CONF_DIR") from None
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {it["name"]: it["value"] for it in found if it is not None}


def default_settings(master: str) -> dict[str, str]:
    """Our defaults for a job with this master."""
    settings = {
        "spark.app.name": "ackscope",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # These lists are for the UI, which is off; in a stream they would grow for days.
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "5",
        # The text of a plan is for the UI, too, and is written again after each stage.
        "spark.sql.ui.explainMode": "simple",
        # All tables together need some hundreds of generated classes repeatedly; with the default of 100, every round
        # would recompile them. Nor may the order in which parts of a query end create a different class.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.codegen.useIdInClassName": "false",
        "spark.sql.shuffle.partitions": "4",
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
        "spark.sql.parquet.compression.codec": "zstd",
        # Executors of a cluster; there are none locally.
        "spark.executor.memory": "1g",
        "spark.executor.defaultJavaOptions": f"-Duser.timezone=UTC {_COMPILE_ALL}",
    }
    if is_local(master):
        # Both are needed: results over 1 MB are otherwise fetched from the external address, where nothing listens.
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings


def driver_settings(log4j: Path, known: Mapping[str, str], *, cheap_code: bool) -> dict[str, str]:
    """Defaults of a Java that we start ourselves; that of spark-submit has its own.

    Args:
        log4j: the configuration of Spark's log.
        known: settings that an administrator has made.
        cheap_code: limit the JIT compiler to cheap optimisations, for small jobs that run repeatedly.
    """
    java = [
        f'"-Dlog4j2.configurationFile={log4j.as_uri()}"',
        "-Duser.timezone=UTC",
        # Serial GC needs the least memory, and is as fast as others with a heap of 1 GiB and two cores. Java does not
        # start with two collectors.
        *([] if _COLLECTOR.search(known.get("spark.driver.extraJavaOptions", "")) else ["-XX:+UseSerialGC"]),
        # Java interprets methods above 8,000 bytes, and Spark generates such methods.
        _COMPILE_ALL,
        # After an out-of-memory error Spark loses threads and hangs.
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+DisplayVMOutputToStderr",
        *(["-XX:TieredStopAtLevel=1"] if cheap_code else []),
    ]
    return {"spark.driver.memory": "1g", "spark.driver.defaultJavaOptions": " ".join(java)}
