"""Runs the cases of a target in a process of its own, watches it, and makes a benchmark of it.

A case that does not end is interrupted even in native code, and one that kills the process is named: the next one runs
in a new process.
"""

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from ackscope.errors import UsageError
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.fuzz.cases import MOST_GROWTH, SLOWEST
from bench.tables import table

HANG_SECONDS = 30.0
"""A case that takes longer is interrupted."""
_START_SECONDS = 300.0
"""A target reads its corpus before its first case."""
_CASES = 1000
_REPORT_SECONDS = 60.0
_PRINTED = 20


@dataclass(slots=True)
class _Run:
    """What has been seen of a run so far.

    Attributes:
        at: number of the case that runs; None between processes.
        faults: one of each kind, as in `bench.fuzz.cases.FoundFault`, without input.
        counts: place of a fault -> cases that showed it.
    """

    cases: int = 0
    inputs: int = 0
    longest: tuple[float, int] = (0.0, 0)
    growth: float = 0.0
    at: int | None = None
    ended: bool = False
    faults: dict[str, Document] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, line: Document) -> None:
        """Process one line of the worker."""
        if "at" in line:
            self.at, self.cases = line["at"], self.cases + 1
            self.inputs += line["before"]
        if "fault" in line:
            self.add(line["fault"])
        if "so_far" in line:
            self.longest = max(self.longest, tuple(line["so_far"]["longest"]))
            self.growth = max(self.growth, line["so_far"]["growth"])
        if "end" in line:
            self.inputs += line["end"]
            self.ended = True

    def add(self, fault: Document) -> None:
        """Count a fault."""
        self.counts[fault["where"]] += 1
        self.faults.setdefault(fault["where"], fault)


def fuzz_bench(name: str, shows: str, *, what: str, inputs: int) -> Bench:
    """Return the benchmark of a target.

    Args:
        name: name of its module in `bench.fuzz`, whose `TARGET` makes the target.
        shows: description.
        what: name of its inputs.
        inputs: number of inputs that shall show no fault.
    """

    def measure(args: argparse.Namespace) -> Document:
        return _measure(name, args, what, inputs)

    return Bench(
        name=name,
        room="fuzz",
        shows=shows,
        measure=measure,
        lines=_lines,
        add_arguments=_add_arguments,
        short=("--cases", "200"),
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, metavar="N", help=f"number of cases (default {_CASES})")
    parser.add_argument("--minutes", type=float, metavar="N", help="instead of --cases: how long to run")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of all cases (default 1)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case (default 0)")
    parser.add_argument(
        "--save", type=Path, metavar="DIR", help="write the input of each kind of fault there, for tests/fixtures/fuzz"
    )


def _measure(name: str, args: argparse.Namespace, what: str, goal: int) -> Document:
    if args.cases is not None and args.minutes is not None:
        raise UsageError("--cases and --minutes exclude each other; give one")
    seconds = None if args.minutes is None else 60 * args.minutes
    last = None if seconds is not None else args.first + (_CASES if args.cases is None else args.cases)
    run, began = _Run(), time.monotonic()
    first = args.first
    while last is None or first < last:
        left = None if seconds is None else seconds - (time.monotonic() - began)
        if left is not None and left <= 0:
            break
        words = [name, str(args.seed), str(first), str(last or 0), str(left or 0), str(args.save or "")]
        trouble, output = _worker(words, run)
        if run.ended:
            break
        if run.at is None:
            progress(output)
            raise UsageError("the undamaged input shows a fault already; its traceback is above")
        run.add({"number": run.at, "what": trouble, "where": trouble, "trace": output})
        first, run.at = run.at + 1, None
    spent = time.monotonic() - began
    goals = [
        Goal(f"faults in {run.inputs} {what} (of {goal})", sum(run.counts.values()), 0),
        Goal("seconds of the slowest case", run.longest[0], SLOWEST),
        Goal("growth of memory, MB at its peak", run.growth, MOST_GROWTH),
    ]
    return {
        "seed": args.seed,
        "first": args.first,
        "cases": run.cases,
        "inputs": run.inputs,
        "what": what,
        "seconds": spent,
        "slowest_case": run.longest[1],
        "faults": [{**fault, "cases": run.counts[where]} for where, fault in run.faults.items()],
        "goals": [asdict(goal) for goal in goals],
    }


def _worker(words: list[str], run: _Run) -> tuple[str, str]:
    """Run cases in a process until it ends. Returns why it ended early, and the end of what it printed."""
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "bench.fuzz.worker", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        hung = False
        try:
            hung = process.stdout is not None and not _followed(process.stdout, run)
            if hung:
                # It prints where it is.
                process.send_signal(signal.SIGUSR1)
                time.sleep(0.5)
            else:
                # Its last line is behind it; what follows is why it ends.
                process.wait(_START_SECONDS)
        finally:
            process.kill()
            code = process.wait()
            if process.stdout is not None:
                process.stdout.close()
        errors.seek(0)
        output = errors.read()[-4000:]
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"no end after {HANG_SECONDS:g} s" if hung else f"the process ended: {name}", output


def _followed(lines: IO[str], run: _Run) -> bool:
    """Process the lines of a worker until it ends; False if it hangs."""
    reported = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(lines, selectors.EVENT_READ)
        os.set_blocking(lines.fileno(), False)
        text = ""
        while True:
            if not selector.select(HANG_SECONDS if run.at is not None else _START_SECONDS):
                return False
            piece = os.read(lines.fileno(), 65536).decode()
            if not piece:
                return True
            *whole, text = (text + piece).split("\n")
            for line in whole:
                run.take(json.loads(line))
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                progress(f"case {run.at}: {run.cases} cases, {sum(run.counts.values())} with a fault")


def _lines(document: Document) -> list[str]:
    cases, inputs, seconds = document["cases"], document["inputs"], max(document["seconds"], 1e-9)
    rows = [
        ("cases", f"{cases}", f"{cases / seconds:.1f}"),
        (document["what"], f"{inputs}", f"{inputs / seconds:.1f}"),
    ]
    faults = [
        line
        for fault in document["faults"][:_PRINTED]
        for line in (f"{fault['cases']} cases, such as {fault['number']}: {fault['what']}", f"  {fault['where']}")
    ]
    return [
        f"seed {document['seed']}, from case {document['first']} on; {document['seconds']:.0f} s",
        "",
        *table(("", "number", "a second"), rows),
        "",
        *faults,
        *([f"again: --seed {document['seed']} --first NUMBER --cases 1", ""] if faults else []),
        *(Goal(**goal).line() for goal in document["goals"]),
    ]
