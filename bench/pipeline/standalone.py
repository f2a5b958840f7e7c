"""A Spark cluster on this machine: a master and two workers, each a process of its own, on loopback and free ports."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ackscope.errors import DataError

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_LOOPBACK = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start it, and end it by the ids of its processes; what `--master` takes.

    Raises:
        DataError: it does not start.
    """
    processes: list[subprocess.Popen[bytes]] = []
    try:
        _start(processes, folder, "master", "org.apache.spark.deploy.master.Master", *_LOOPBACK)
        master = _report(processes[0], folder / "master.log", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for name in ("worker-1", "worker-2"):
            words = (*_LOOPBACK, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / name), master)
            _start(processes, folder, name, "org.apache.spark.deploy.worker.Worker", *words)
        for process, name in zip(processes[1:], ("worker-1", "worker-2"), strict=True):
            _report(process, folder / f"{name}.log", r"(Successfully registered with master)")
        yield master
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _start(processes: list[subprocess.Popen[bytes]], folder: Path, name: str, what: str, *words: str) -> None:
    environ = os.environ | {"SPARK_DAEMON_MEMORY": "128m", "SPARK_LOCAL_IP": "127.0.0.1"}
    environ |= {"SPARK_LOCAL_DIRS": str(folder / "scratch"), "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC"}
    with (folder / f"{name}.log").open("wb") as log:
        processes.append(
            subprocess.Popen(
                [_CLASS, what, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd=folder
            )
        )


def _report(process: subprocess.Popen[bytes], log: Path, pattern: str, seconds: float = 180) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            raise DataError(f"{log}: ended: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.1)
    raise DataError(f"waited {seconds} s for {pattern!r} in {log}")
