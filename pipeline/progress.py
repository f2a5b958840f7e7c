"""How far a long job is: a bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tqdm import tqdm


class Progress(Protocol):
    """Told by a job that goes on."""

    def expect(self, units: int) -> None:
        """So many more are to be done."""

    def done(self, units: int) -> None:
        """So many more are done."""


class NoProgress:
    """Nobody looks."""

    def expect(self, units: int) -> None:
        """Not shown."""

    def done(self, units: int) -> None:
        """Not shown."""


class _TqdmBar:
    def __init__(self, bar: "tqdm[Any]") -> None:
        self._bar = bar

    def expect(self, units: int) -> None:
        self._bar.total = (self._bar.total or 0) + units
        self._bar.refresh()

    def done(self, units: int) -> None:
        self._bar.update(units)


@contextmanager
def progress_bar(what: str, unit: str) -> Iterator[Progress]:
    """A bar on stderr while the job goes on, such as `compact: 12/56 folders`; it goes when the job is over."""
    if not sys.stderr.isatty():
        yield NoProgress()
        return
    with tqdm(
        total=0, desc=what, unit=f" {unit}", file=sys.stderr, leave=False, dynamic_ncols=True, mininterval=0
    ) as bar:
        yield _TqdmBar(bar)
