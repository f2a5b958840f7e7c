"""A benchmark: its name, description, options, measurement and table."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ackscope.cli import Parser, print_json
from ackscope.errors import AckscopeError
from ackscope.log import redact, setup_logging
from bench.tables import WIDTH, wrap

Document = dict[str, Any]

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C or SIGTERM ended, as in a shell."""


def _no_options(_: argparse.ArgumentParser) -> None:
    return


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark.

    Attributes:
        shows: description for `--help` and above the table.
        measure: runs the benchmark and returns the document that `--json` prints.
        lines: formats that document as a table in 80 columns.
        add_arguments: declares its own options; every option has a default.
        short: options for a short run, used by the run of all benchmarks.
        room: its folder under `bench`.
    """

    name: str
    shows: str
    measure: Callable[[argparse.Namespace], Document]
    lines: Callable[[Document], list[str]]
    add_arguments: Callable[[argparse.ArgumentParser], None] = _no_options
    short: tuple[str, ...] = ()
    room: str = "probes"

    def main(self, words: list[str] | None = None) -> int:
        """Run the command `python -m bench.<room>.<name>` and return its exit code.

        The code is 0 after a measurement, even if goals are not met; 130 after Ctrl-C or SIGTERM; else that of the
        error.
        """
        parser = Parser(prog=f"python -m bench.{self.room}.{self.name}", description=self.shows)
        self.add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        args = parser.parse_args(words)
        setup_logging()
        try:
            with _in_order():
                document = self.measure(args)
        except KeyboardInterrupt:
            progress("ended before it was done; what it started is stopped")
            return INTERRUPTED
        except AckscopeError as error:
            print(f"{parser.prog}: {redact(str(error))}", file=sys.stderr)
            return error.exit_code
        if args.json:
            print_json({"bench": self.name, "shows": self.shows, **document})
        else:
            text = [f"{self.name}: {self.shows}", "", *self.lines(document)]
            print("\n".join(part for line in text for part in _fitted(line)), flush=True)
        return 0


def run_all(benches: Sequence[Bench], words: Sequence[str]) -> int:
    """Run benchmarks in their short form, one after the other, each with its table.

    Args:
        benches: in the order in which they run.
        words: options for all of them, such as `--json`.

    Returns:
        The highest exit code. A benchmark that lacks a part does not stop the others; Ctrl-C or SIGTERM does.
    """
    worst = 0
    for bench in benches:
        worst = max(worst, bench.main([*bench.short, *words]))
        if worst == INTERRUPTED:
            break
        print(flush=True)
    return worst


@contextmanager
def _in_order() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C inside the block, so that the started servers are stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fitted(line: str) -> list[str]:
    return [line] if len(line) <= WIDTH else wrap(line, "  ")


def progress(line: str) -> None:
    """Print the current step on stderr, because a benchmark takes minutes."""
    print(f"bench: {time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def add_seconds(parser: argparse.ArgumentParser, default: float, what: str = "each run") -> None:
    """Declare `--seconds`."""
    parser.add_argument(
        "--seconds", type=float, default=default, metavar="N", help=f"length of {what} (default {default:g})"
    )
