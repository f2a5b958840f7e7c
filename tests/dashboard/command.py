"""The real `ackscope dashboard` command, started and stopped as by a user."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import requests

START_SECONDS = 90.0


class Served(NamedTuple):
    """A running dashboard."""

    url: str
    process: subprocess.Popen[str]
    log: Path


def free_port() -> int:
    """A free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def arguments(exporter: str, rollups: Path | None, listen: str, *more: str) -> list[str]:
    """The command line."""
    history = [] if rollups is None else ["--rollups", str(rollups)]
    options = ["--exporter", exporter, *history, "--listen", listen, *more]
    return [sys.executable, "-m", "ackscope", "dashboard", *options]


@contextmanager
def serving_page(
    exporter: str, rollups: Path | None, folder: Path, base: str = "", *more: str, port: int = 0
) -> Iterator[Served]:
    """Start the command in another folder than the checkout, wait until it responds, and stop it by its process ID."""
    listen = f"127.0.0.1:{port or free_port()}"
    log = folder / "dashboard.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            arguments(exporter, rollups, listen, "--base-path", base, *more),
            cwd=folder,
            env=_environment(),
            stdout=stderr,
            stderr=stderr,
            text=True,
        )
    try:
        url = f"http://{listen}{base}"
        _wait(f"{url}/_stcore/health", process, log)
        yield Served(url, process, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """That of this process; `PYTHONPATH=.` means the checkout of the tests in another folder, too."""
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}


def _wait(url: str, process: subprocess.Popen[str], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()}"
        try:
            if requests.get(url, timeout=2).text == "ok":
                return
        except requests.RequestException:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer within {START_SECONDS:.0f} s: {log.read_text()}")
