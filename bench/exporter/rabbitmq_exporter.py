"""kbudde/rabbitmq_exporter (discontinued in 2024), built once from its Go module into the user's cache."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import requests

from ackscope.errors import MissingPart
from bench.bench import progress
from bench.exporting import end_process, wait_for
from lab.bootstrap import cache_directory
from lab.node import LabNode
from lab.ports import free_ports

MODULE = "github.com/kbudde/rabbitmq_exporter"
VERSION = "v1.0.0"
_OLDEST_GO = (1, 21)
_TIMEOUT = 120
"""Timeout of its requests, seconds (default 30): slow responses are measured, not aborted."""


@contextmanager
def rabbitmq_exporter(node: LabNode) -> Iterator[tuple[str, int]]:
    """Run it with its defaults for a node; yield its base URL and its PID.

    Raises:
        MissingPart: the build failed.
        BrokerError: it did not start.
    """
    program = build()
    broker, port = urlsplit(node.management), free_ports(1)[0]
    environ = {
        "PATH": os.environ.get("PATH", ""),
        "RABBIT_URL": f"http://{broker.hostname}:{broker.port}",
        "RABBIT_USER": broker.username or "",
        "RABBIT_PASSWORD": broker.password or "",
        "RABBIT_TIMEOUT": str(_TIMEOUT),
        "PUBLISH_ADDR": "127.0.0.1",
        "PUBLISH_PORT": str(port),
        "LOG_LEVEL": "error",
    }
    # It logs its regular end like a failure; real failures are visible in its responses.
    silent = subprocess.DEVNULL
    process = subprocess.Popen([str(program)], env=environ, cwd="/", stdin=silent, stdout=silent, stderr=silent)
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: _answers(base), "rabbitmq_exporter")
        yield base, process.pid
    finally:
        end_process(process, 10)


def _answers(base: str) -> bool:
    try:
        return requests.get(f"{base}/", timeout=5).ok
    except requests.RequestException:
        return False


def build() -> Path:
    """Return the path of the program; build it if it does not exist.

    Raises:
        MissingPart: Go is missing or too old, or the module cannot be downloaded.
    """
    program = cache_directory(os.environ) / "peers" / VERSION / "rabbitmq_exporter"
    if not program.exists():
        _check_go()
        _build(program)
    return program


def go_version(said: str) -> tuple[int, int] | None:
    """Return (1, 26) for `go version go1.26.8 linux/amd64`, and None for other text."""
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def _check_go() -> None:
    needed = ".".join(str(part) for part in _OLDEST_GO)
    if shutil.which("go") is None:
        raise MissingPart(f"go is missing, {needed} or newer builds rabbitmq_exporter: apt-get install golang")
    said = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    version = go_version(said)
    if version is None or version < _OLDEST_GO:
        raise MissingPart(f"rabbitmq_exporter needs Go {needed} or newer; this is: {said.strip() or 'no Go'}")


def _build(program: Path) -> None:
    progress(f"building {MODULE} {VERSION} with Go into {program.parent}")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        # A module that requires it downloads only this version, without the list of all versions.
        (Path(folder) / "go.mod").write_text(f"module ackscope.bench/peer\n\ngo 1.21\n\nrequire {MODULE} {VERSION}\n")
        made = Path(folder) / program.name
        done = subprocess.run(
            ["go", "build", "-mod=mod", "-o", str(made), MODULE],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not made.exists():
            said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            raise MissingPart(f"Go could not build {MODULE} {VERSION}: {(said or ['it said nothing'])[-1][:200]}")
        made.rename(program)
