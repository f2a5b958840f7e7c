"""`python -m bench.fuzz.worker TARGET SEED FIRST LAST SECONDS DIR`: runs cases and prints a line of JSON about each.

It is started by `bench.fuzz.driver`, which watches it. TARGET is a module of this package, or one with dots; LAST and
SECONDS may be 0, DIR empty.
"""

import faulthandler
import importlib
import json
import os
import re
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ackscope.tuning import tune
from bench.fuzz.cases import CaseRunner, FoundFault, FuzzCase, FuzzTarget, saved

_SO_FAR_EVERY = 50


def main(name: str, seed: int, first: int, last: int, seconds: float, folder: Path | None) -> None:
    """Run cases from `first` to before `last`, or for some seconds."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    # What the product prints must not get between the lines.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    tune()
    target: FuzzTarget = importlib.import_module(name if "." in name else f"bench.fuzz.{name}").TARGET()
    with CaseRunner(target, seed) as runner:
        _check_undamaged(runner)
        runner.begin()
        until = time.monotonic() + seconds if seconds else None
        number, seen, counted = first, set[str](), 0
        while (until is None or time.monotonic() < until) and (not last or number < last):
            _say(lines, at=number, before=runner.inputs - counted)
            counted = runner.inputs
            fault = runner.run(number)
            if fault is not None:
                if fault.where not in seen and folder is not None and fault.case is not None:
                    fault = runner.reduced(fault)
                    _save(folder / name, fault)
                seen.add(fault.where)
                _say(lines, fault={**asdict(fault), "case": None})
            number += 1
            if number % _SO_FAR_EVERY == 0:
                _say(lines, so_far={"longest": runner.longest, "growth": runner.growth})
        _say(lines, so_far={"longest": runner.longest, "growth": runner.growth})
        _say(lines, end=runner.inputs - counted)


def _check_undamaged(runner: CaseRunner) -> None:
    made = runner.made(0)
    fault = runner.checked(-1, FuzzCase(made.base, {}))
    if fault is not None:
        sys.exit(fault.trace)


def _save(folder: Path, fault: FoundFault) -> None:
    if fault.case is not None:
        name = re.sub(r"[^A-Za-z0-9]+", "-", fault.where)[:80].strip("-").lower()
        saved(fault.case, fault.what, folder / f"{name}-{fault.number}.json")


def _say(lines: Any, **document: Any) -> None:
    lines.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    _target, _seed, _first, _last, _seconds, _folder = sys.argv[1:]
    main(_target, int(_seed), int(_first), int(_last), float(_seconds), Path(_folder) if _folder else None)
