"""Cases: the damaged input of one try, how it is made again from seed and number, and how a fault is noticed."""

import json
import logging
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Protocol, Self

from ackscope.log import setup_logging
from ackscope.printable import printable

SLOWEST, MOST_GROWTH = 1.0, 300.0
"""Goals: processor seconds of a case, and MB that all cases of a run may add to the memory of the process."""

_TRIES = 3
"""A case that was slow is tried again, because it may have been the first to load something: the fastest counts."""


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """Damaged input.

    Attributes:
        base: the recording that was damaged; what is not in `inputs` is read from it as it is.
        inputs: name, such as the path of an answer -> its bytes.
        variety: decides what else differs between cases, such as limits.
    """

    base: str
    inputs: dict[str, bytes] = field(default_factory=dict)
    variety: int = 0


class FuzzTarget(Protocol):
    """One way in."""

    def make(self, rng: Random) -> FuzzCase:
        """Make the input of a case. The same numbers make the same input."""
        ...

    def check(self, case: FuzzCase) -> None:
        """Give the input to the product.

        Raises:
            Exception: the product did what it must not: raised anything but its own errors, or broke a promise.
        """
        ...

    def close(self) -> None:
        """Stop servers, and remove files."""
        ...


class PromiseBroken(Exception):
    """The product answered, but not as it promises."""


@dataclass(frozen=True, slots=True)
class FoundFault:
    """A case that showed a fault of the product.

    Attributes:
        number: number of the case.
        what: what happened, in one line.
        where: the innermost place in our code, the same for all cases of one fault.
        trace: the traceback.
        case: the input; None if the process died of it.
    """

    number: int
    what: str
    where: str
    trace: str = ""
    case: FuzzCase | None = None


class _LogTrap(logging.Handler):
    """Remembers the exceptions that boundaries of the product caught and logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        structured = record.msg.get("exc_info") if isinstance(record.msg, dict) else None
        info = record.exc_info or structured
        found = info[1] if isinstance(info, tuple) else info if isinstance(info, BaseException) else sys.exc_info()[1]
        if info and found is not None:
            self.errors.append(found)


class CaseRunner:
    """Runs cases of one target, as a context manager: it closes the target at the end.

    Args:
        target: its undamaged input has passed.
        seed: seed of all cases.

    Attributes:
        longest: processor seconds of the slowest case, and its number.
        inputs: damaged inputs so far.
    """

    def __init__(self, target: FuzzTarget, seed: int) -> None:
        setup_logging()
        self._target, self._seed, self._trap = target, seed, _LogTrap()
        self.longest, self.inputs = (0.0, 0), 0
        self._grown = False
        self.begin()

    def begin(self) -> None:
        """Take the memory of now as that of before the first case."""
        self._began_with = _peak()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._target.close()

    @property
    def growth(self) -> float:
        """MB that the process has grown since the first case, at its peak."""
        return _peak() - self._began_with

    def made(self, number: int) -> FuzzCase:
        """Return the input of a case."""
        return self._target.make(Random(f"{self._seed}:{number}"))  # noqa: S311  repeatable on purpose

    def run(self, number: int) -> FoundFault | None:
        """Run a case; return the fault that it showed."""
        case = self.made(number)
        self.inputs += len(case.inputs)
        fault, seconds = self._timed(number, case)
        for _ in range(_TRIES - 1):
            if seconds > SLOWEST:
                seconds = min(seconds, self._timed(number, case)[1])
        self.longest = max(self.longest, (seconds, number))
        if fault is None and seconds > SLOWEST:
            fault = FoundFault(number, f"took {seconds:.1f} s", "slow", case=case)
        if fault is None and not self._grown and self.growth > MOST_GROWTH:
            self._grown = True
            fault = FoundFault(number, f"the process has grown by {self.growth:.0f} MB", "growth", case=case)
        return fault

    def checked(self, number: int, case: FuzzCase) -> FoundFault | None:
        """Give input to the target; return the fault that it showed."""
        self._trap.errors.clear()
        with _trapped(self._trap):
            try:
                self._target.check(case)
            except Exception as error:  # noqa: BLE001  any of them is what is looked for
                return _fault(number, error, case)
        return _fault(number, self._trap.errors[0], case) if self._trap.errors else None

    def reduced(self, fault: FoundFault) -> FoundFault:
        """Return the fault with only the inputs that it needs."""
        case = fault.case
        if case is None or fault.where in {"slow", "growth"}:
            return fault
        for name in list(case.inputs):
            fewer = replace(case, inputs={key: value for key, value in case.inputs.items() if key != name})
            again = self.checked(fault.number, fewer)
            if again is not None and again.where == fault.where:
                fault, case = again, fewer
        return fault

    def _timed(self, number: int, case: FuzzCase) -> tuple[FoundFault | None, float]:
        began = time.process_time()
        fault = self.checked(number, case)
        return fault, time.process_time() - began


def one_line(text: str, what: str) -> None:
    """Check a message for people.

    Raises:
        PromiseBroken: it has several lines, or part of a traceback. Control characters are escaped where it is printed.
    """
    if "\n" in text or "Traceback" in text:
        raise PromiseBroken(f"{what} is not one line: {text[:200]!r}")


def saved(case: FuzzCase, broke: str, path: Path) -> None:
    """Write a case to a file of the corpus. Bytes become characters of Latin-1, so that most of it can be read."""
    document = {
        "broke": broke,
        "base": case.base,
        "variety": case.variety,
        "inputs": {name: content.decode("latin-1") for name, content in case.inputs.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def loaded(path: Path) -> FuzzCase:
    """Read a case from a file of the corpus."""
    document: dict[str, Any] = json.loads(path.read_text())
    inputs = {name: content.encode("latin-1") for name, content in document["inputs"].items()}
    return FuzzCase(document["base"], inputs, document["variety"])


@contextmanager
def _trapped(trap: _LogTrap) -> Iterator[None]:
    """Send the log to the trap alone."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, [trap]
    try:
        yield
    finally:
        root.handlers = before


def _fault(number: int, error: BaseException, case: FuzzCase) -> FoundFault:
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    place = ours[-1] if ours else None
    where = "" if place is None else f" at {Path(place.filename).name}:{place.name}"
    detail = f": {str(error)[:60]}" if isinstance(error, PromiseBroken) else ""
    what = printable(f"{type(error).__name__}: {str(error)[:300]}").replace("\n", " ")
    trace = "".join(traceback.format_exception(error))[-6000:]
    return FoundFault(number, what, f"{type(error).__name__}{where}{detail}", trace, case)


def _peak() -> float:
    """Most MB of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
