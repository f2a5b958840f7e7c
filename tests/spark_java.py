"""How tests start Spark's Java; `python -m tests.spark_java` writes its class archive, which `make test` does.

Java starts by loading and verifying Spark's 20,000 classes. With an archive of them (class data sharing) a small job
needs half of the CPU time. Java ignores an archive that is missing, or was made by another Java or for another class
path.
Source: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import os
import tempfile
from contextlib import nullcontext
from pathlib import Path
from threading import Timer

from pipeline.spark_settings import configured

_ROOT = Path(__file__).parents[1]
_TOOLS, _DEMO_SETTINGS = _ROOT / ".tools", _ROOT / "lab" / "demo" / "spark"
CLASS_ARCHIVE = _TOOLS / "spark-classes.jsa"

_STREAM_SECONDS = 8.0
"""Time for the first batches of a stream."""

_OPTIONS = (
    # Spark's jobs over little data end before Java's optimising compiler pays: without it they take a third less CPU.
    "-XX:TieredStopAtLevel=1",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)


def environment(archive: str = f"-XX:SharedArchiveFile={CLASS_ARCHIVE}") -> dict[str, str]:
    """Variables for all processes that start Spark.

    Args:
        archive: the option of Java that says what to do with the class archive.
    """
    # Spark interprets queries, as in the demo, which takes a third less CPU. tests/spark/test_standalone.py compares
    # both ways. The folder of settings is on the class path, where an archive allows no folder with files. So the
    # settings are options, and the folder does not exist.
    settings = (f"-D{name}={value}" for name, value in configured({"SPARK_CONF_DIR": str(_DEMO_SETTINGS)}).items())
    options = " ".join((*_OPTIONS, *settings, archive))
    return {"SPARK_SUBMIT_OPTS": options, "SPARK_CONF_DIR": str(_TOOLS / "no-spark-conf")}


def _write_archive() -> None:
    """Roll up minutes of every table, at once and by a stream; Java writes the classes that it loaded when it ends."""
    from ackscope.clock import SystemClock
    from pipeline import jobs, session
    from pipeline.stop import Stop
    from tests.spark.landing_files import write_random

    new = CLASS_ARCHIVE.with_suffix(".new")
    new.unlink(missing_ok=True)
    os.environ.update(environment(f"-XX:ArchiveClassesAtExit={new}"))
    # Writing takes some seconds more than Java has to end otherwise.
    session._EXIT_SECONDS = 300.0
    stop = Stop()
    with tempfile.TemporaryDirectory() as name, session.spark_session(long_lived=True) as spark:
        root, clock = Path(name), SystemClock()
        write_random(root / "landing", seed=1, span=600)
        jobs.run(root / "landing", root / "batch", lambda: nullcontext(spark), clock)
        Timer(_STREAM_SECONDS, setattr, (stop, "requested", True)).start()
        jobs.stream(
            root / "landing", root / "rollups", root / "checkpoint", 0.5, lambda: nullcontext(spark), stop, clock
        )
    new.rename(CLASS_ARCHIVE)


if __name__ == "__main__":
    _write_archive()
