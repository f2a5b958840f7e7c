"""The landing folder: which files there are, what each holds, and a place apart for those that are no good."""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ackscope.errors import DataError
from ackscope.tables import LANDING, Table
from pipeline.hours import HOUR, date_of
from pipeline.storage.footer import Contents, ForeignFileError, contents, read_through

log = logging.getLogger(__name__)

Touched = dict[tuple[Table, str], set[int]]
"""Hours since 1970 of a table and cluster."""

QUARANTINE = "_quarantine"

_CLUSTER = re.compile(r"cluster=([A-Za-z0-9_.-]+)")
_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
_ODD = {".", ".."}
_REMEMBERED = 100_000
"""Files, some 50 MB: three days of three tables with a file every ten seconds."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One folder of landing files."""

    table: Table
    cluster: str
    day: date

    @property
    def folder(self) -> Path:
        """Where it is, below the landing folder."""
        return Path(self.table.name) / f"cluster={self.cluster}" / f"date={self.day.isoformat()}"


@dataclass(frozen=True, slots=True)
class _Seen:
    stamp: tuple[int, int]
    contents: Contents | None


class Landing:
    """The landing folder as it is now; what it learned of a file it keeps until the file changes.

    Attributes:
        root: the folder.
        quarantined: how many files it set apart.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.quarantined = 0
        self._seen: dict[Partition, dict[Path, _Seen]] = {}

    def partitions(self) -> Iterator[Partition]:
        """Every folder that can hold landing files, in order."""
        for table in LANDING.values():
            for cluster_folder in _folders(self.root / table.name):
                for date_folder in _folders(cluster_folder):
                    partition = self.partition_of(date_folder)
                    if partition is not None:
                        yield partition

    def partition_of(self, folder: Path) -> Partition | None:
        """The partition that a folder is; None where its path is none of the layout."""
        try:
            name, cluster, day = folder.relative_to(self.root).parts
        except ValueError:
            return None
        found, dated = _CLUSTER.fullmatch(cluster), _DATE.fullmatch(day)
        if name not in LANDING or found is None or dated is None or found[1] in _ODD:
            return None
        try:
            return Partition(LANDING[name], found[1], date.fromisoformat(dated[1]))
        except ValueError:
            return None

    def files(self, partition: Partition) -> dict[Path, Contents]:
        """The sound files of a partition; bad ones are set apart on the way.

        Raises:
            DataError: the folder cannot be read.
        """
        before = self._seen.pop(partition, {})
        now: dict[Path, _Seen] = {}
        for path, stamp in _listing(self.root / partition.folder):
            seen = before.get(path)
            if seen is None or seen.stamp != stamp:
                try:
                    seen = _Seen(stamp, self._look(path, partition))
                except FileNotFoundError:
                    continue
            now[path] = seen
        self._keep(partition, now)
        return {path: seen.contents for path, seen in now.items() if seen.contents is not None}

    def covering(self, table: Table, cluster: str, start: int, end: int) -> dict[Path, Contents]:
        """The files with rows from `start` to before `end`, seconds since 1970, and maybe some without.

        A row may stand a day off its own date, so the folders of the days around are looked at, too.
        """
        days = {date_of(second // HOUR + shift) for second in (start, end - 1) for shift in (-24, 0, 24)}
        return {
            path: held
            for day in sorted(days)
            for path, held in self.files(Partition(table, cluster, day)).items()
            if held.first < end * 1_000_000 and start * 1_000_000 <= held.last
        }

    def doubt(self, table: Table, paths: Iterable[Path]) -> int:
        """Read these files through, because Spark could not; set apart what is damaged, and say how many."""
        damaged = 0
        for path in paths:
            try:
                read_through(path, table)
            except ForeignFileError as error:
                self._set_apart(path, str(error))
                damaged += 1
            except FileNotFoundError:
                damaged += 1
        return damaged

    def _keep(self, partition: Partition, files: dict[Path, _Seen]) -> None:
        """Remember a partition as the latest used; forget the others, the longest unused first, beyond a limit."""
        self._seen[partition] = files
        total = sum(len(known) for known in self._seen.values())
        while total > _REMEMBERED and len(self._seen) > 1:
            total -= len(self._seen.pop(next(iter(self._seen))))

    def _look(self, path: Path, partition: Partition) -> Contents | None:
        try:
            return contents(path, partition.table, partition.day)
        except ForeignFileError as error:
            self._set_apart(path, str(error))
            return None

    def _set_apart(self, path: Path, reason: str) -> None:
        """Move a file to the quarantine, beside nothing of the same name, and say so in one line."""
        self.quarantined += 1
        target = _free(self.root / QUARANTINE / path.relative_to(self.root))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        except OSError as error:
            log.warning("%s: left out, %s; it cannot be moved away (%s)", path, reason, error.strerror)
            # It stays, and is left out of every rollup as long as it does not change.
            partition, info = self.partition_of(path.parent), path.stat()
            if partition is not None:
                self._seen.setdefault(partition, {})[path] = _Seen((info.st_size, info.st_mtime_ns), None)
        else:
            log.warning("%s: set apart in %s, %s", path, target.parent, reason)


def require_folder(root: Path) -> None:
    """Refuse a landing path that can never be a folder of files.

    Raises:
        DataError: it is a file, or may not be read.
    """
    if root.exists() and not root.is_dir():
        raise DataError(f"--landing {root}: is a file; give the folder that the exporter writes to")
    if root.is_dir() and not os.access(root, os.R_OK | os.X_OK):
        raise DataError(f"--landing {root}: may not be read; give its reader's permission to this user")


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _listing(folder: Path) -> list[tuple[Path, tuple[int, int]]]:
    """The Parquet files of a folder with size and time of change; hidden and unfinished ones are not among them."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".parquet") and not entry.name.startswith((".", "_")) and entry.is_file():
                    info = entry.stat()
                    found.append((Path(entry.path), (info.st_size, info.st_mtime_ns)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}); look at its disk and owner") from None
    return sorted(found)


def _free(path: Path) -> Path:
    """`path`, or the first of `path.1`, `path.2` ... that is not taken."""
    candidate, number = path, 0
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate
