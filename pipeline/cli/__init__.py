"""The jobs as commands: one module per job, each with `HELP`, `add_arguments` and `run`."""

import argparse
from typing import Protocol

from pipeline.cli import analyse, ask, backfill, backtest, compact, expire, run, stream


class JobCommand(Protocol):
    """The interface of a job's module.

    Attributes:
        HELP: one line for `--help`.
    """

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the job and return the exit code."""
        ...


# In the order of `--help`.
COMMANDS: dict[str, JobCommand] = {
    "run": run,
    "stream": stream,
    "ask": ask,
    "analyse": analyse,
    "backtest": backtest,
    "compact": compact,
    "expire": expire,
    "backfill": backfill,
}
