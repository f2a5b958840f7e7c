"""A stream over a folder or a bucket of its own, for benchmarks that disturb or watch it."""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.errors import DataError
from ackscope.manifest import read
from ackscope.object_path import ObjectPath, Place
from bench.pipeline.standalone import cluster
from lab.s3_server import BUCKET, environment, s3_server

CLUSTER = "shop"
FOLDER, S3 = "folder", "s3"


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument("--store", choices=(FOLDER, S3), default=FOLDER, help="where files are (default folder)")


@dataclass(slots=True)
class Stage:
    """Where everything is.

    Attributes:
        root: of landing and rollups.
        folder: for logs, on this machine.
        master: of a Spark cluster; None: Spark runs in the process of the stream.
        ended: what streams said that ended although nobody killed them.
    """

    root: Place
    folder: Path
    master: str | None
    dice: random.Random
    ended: list[str] = field(default_factory=list)

    @property
    def landing(self) -> Place:
        """Where files land."""
        return self.root / "landing"

    @property
    def rollups(self) -> Place:
        """What the stream writes."""
        return self.root / "rollups"

    @property
    def number(self) -> int:
        """Of the manifest; -1 if it cannot be read."""
        try:
            return read(self.rollups, CLUSTER).number
        except DataError:
            return -1

    def start(self, log: str = "stream", *, alone: bool = False) -> subprocess.Popen[bytes]:
        """Start a stream; what it says goes into a file of its own. `alone`: without the Spark cluster."""
        with (self.folder / f"{log}.log").open("wb") as said:
            return subprocess.Popen(
                [*self._command("stream", self.rollups, None if alone else self.master), "--trigger", "500ms"],
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def said(self, log: str = "stream") -> list[str]:
        """Lines that the last stream with this log said, without those that only inform."""
        lines = (self.folder / f"{log}.log").read_text(errors="replace").splitlines()
        return [line for line in lines if line.strip() and "level=info" not in line]

    def run(self, rollups: Place) -> None:
        """Roll up all landing files."""
        subprocess.run([*self._command("run", rollups, self.master), "--json"], check=True, stdout=subprocess.DEVNULL)

    def _command(self, verb: str, rollups: Place, master: str | None) -> list[str]:
        words = ["--landing", str(self.landing), "--rollups", str(rollups)]
        words += [] if master is None else ["--master", master]
        return [sys.executable, "-m", "ackscope", "pipeline", verb, *words]


@contextmanager
def stage_of(store: str, seed: int, *, executors: bool) -> Iterator[Stage]:
    """An empty stage, for a `with` block.

    Args:
        store: `FOLDER`, or `S3` for a server of its own.
        seed: of its dice.
        executors: with a Spark cluster of two workers.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        root: Place = folder
        if store == S3:
            stack.enter_context(environment(stack.enter_context(s3_server())))
            root = ObjectPath(f"s3://{BUCKET}", "bench")
        # Executors get the environment of their worker.
        master = stack.enter_context(cluster(folder)) if executors else None
        yield Stage(root, folder, master, random.Random(seed))  # noqa: S311  picks moments, guards nothing
