"""Progress of a long job: a bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tqdm import tqdm


class Progress(Protocol):
    """Receives the progress of a job."""

    def expect(self, units: int) -> None:
        """Add units to the total."""

    def done(self, units: int) -> None:
        """Mark units as done."""


class NoProgress:
    """Shows nothing."""

    def expect(self, units: int) -> None:
        """Ignored."""

    def done(self, units: int) -> None:
        """Ignored."""


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
    """A bar on stderr for a `with` block, such as `compact: 12/56 folders`; removed at the end."""
    if not sys.stderr.isatty():
        yield NoProgress()
        return
    with tqdm(
        total=0, desc=what, unit=f" {unit}", file=sys.stderr, leave=False, dynamic_ncols=True, mininterval=0
    ) as bar:
        yield _TqdmBar(bar)
