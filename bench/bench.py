"""What every benchmark is: a name, what it shows, how to measure it, how to print it."""

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
"""The exit code of a command that Ctrl-C or SIGTERM ended, as a shell has it."""


def _no_options(_: argparse.ArgumentParser) -> None:
    return


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark.

    Attributes:
        shows: a sentence for `--help` and above the table.
        measure: runs it; what it returns is printed whole with `--json`.
        lines: the table of that document, in 80 columns.
        add_arguments: its own options; every one has a default.
        short: options that make it short, for the run of all benchmarks.
        room: the folder under `bench` that it is in.
    """

    name: str
    shows: str
    measure: Callable[[argparse.Namespace], Document]
    lines: Callable[[Document], list[str]]
    add_arguments: Callable[[argparse.ArgumentParser], None] = _no_options
    short: tuple[str, ...] = ()
    room: str = "probes"

    def main(self, words: list[str] | None = None) -> int:
        """The command `python -m bench.<room>.<name>`: 0 once it has measured, whatever it found; 130 if ended."""
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
    """Run them in a row, kept short, each with its table.

    Args:
        benches: in their order.
        words: options for all of them, such as `--json`.

    Returns:
        The worst of their exit codes: one that lacks a part does not keep the others from running,
        one that was ended does.
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
    """SIGTERM ends what runs here as Ctrl-C does, so that the servers it started are stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fitted(line: str) -> list[str]:
    return [line] if len(line) <= WIDTH else wrap(line, "  ")


def progress(line: str) -> None:
    """Say on stderr what is being done: a benchmark takes minutes."""
    print(f"bench: {time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def add_seconds(parser: argparse.ArgumentParser, default: float, what: str = "each run") -> None:
    """Declare `--seconds`."""
    parser.add_argument(
        "--seconds", type=float, default=default, metavar="N", help=f"length of {what} (default {default:g})"
    )
