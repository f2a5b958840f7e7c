"""The jobs as commands: one file a verb, each with `HELP`, `add_arguments` and `run`."""

import argparse
from typing import Protocol

from pipeline.cli import analyse, ask, backfill, compact, expire, run, stream


class Command(Protocol):
    """What the file of a verb offers.

    Attributes:
        HELP: one line for `--help`.
    """

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""
        ...


COMMANDS: dict[str, Command] = {
    "run": run,
    "stream": stream,
    "ask": ask,
    "analyse": analyse,
    "compact": compact,
    "expire": expire,
    "backfill": backfill,
}
"""In the order of `--help`."""
