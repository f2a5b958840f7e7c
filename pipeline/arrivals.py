"""Which landing files the rollups tell of: so that a file that comes while others are rolled up is seen whole, too."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ackscope.tables import Table
from pipeline.look import Files
from pipeline.storage.footer import Contents


class Arrivals:
    """What came before a moment is known; of what came since, what was taken in is remembered.

    Taking a file for new that is not costs its minutes once more, and nothing else: after a restart it happens.

    Args:
        until: all files that came before this moment, seconds since 1970, are rolled up, or will be.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._taken: dict[Path, float] = {}

    def settle(self, until: float) -> None:
        """All files that came before this moment are rolled up: they need not be remembered any more."""
        if until > self._until:
            self._until = until
            self._taken = {path: came for path, came in self._taken.items() if came >= until}

    def took(self, path: Path) -> bool:
        """Whether this very file was taken in, as far as is remembered."""
        return path in self._taken

    def old(self, held: Contents) -> bool:
        """Whether a file came before the moment."""
        return held.came < self._until

    def new(self, files: Iterable[tuple[Path, Table, Contents]]) -> Files:
        """Those of these files that the rollups may not tell of."""
        return {
            path: (table, held) for path, table, held in files if held.came >= self._until and path not in self._taken
        }

    def take(self, files: Mapping[Path, Contents]) -> None:
        """These files are rolled up, or will be before anybody else looks."""
        self._taken |= {path: held.came for path, held in files.items() if held.came >= self._until}
