"""The files of one landing folder at one moment, while others write, put together and remove.

Files that were put together stand beside their sources for a moment: a note names both. Where all the new files are
there, the sources are left out; where one is missing, the new files are. So there is one instant, the rename of the
last new file, at which the folder changes from the one to the other, and a crash on either side of it does no harm.
"""

import os
import re
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import orjson

from ackscope.errors import DataError
from pipeline.storage.durable import atomic_write

Stamp = tuple[int, int, int]
"""Size, time of change of the content and of the file, in nanoseconds."""

COMPACTED = re.compile(r"compacted-\d{8}T\d{6}-[0-9a-f]{8}-\d{6}\.parquet")
"""Names of files that were put together: the moment of the newest source, a digest of all their names, a number."""

_NOTE_NAME = re.compile(r"_replaces-([0-9a-f]{8})\.json")
_VERSION = 1
_CLOCK_TICK_NS = 20_000_000
"""Nanoseconds: the kernel stamps changes of a folder every few milliseconds only."""

_LISTING_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class CompactionNote:
    """What the note of a compaction says.

    Attributes:
        digest: names it.
        files: the new files, all of them or none count.
        sources: the files that they stand for.
    """

    digest: str
    files: frozenset[str]
    sources: frozenset[str]

    @property
    def name(self) -> str:
        """Of the note."""
        return f"_replaces-{self.digest}.json"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A landing folder at one moment.

    Attributes:
        files: those that count, in the order of their names.
        notes: compactions that are not over.
        names: everything that is there.
    """

    files: dict[Path, Stamp]
    notes: tuple[CompactionNote, ...] = ()
    names: frozenset[str] = frozenset()


def list_folder(folder: Path) -> FolderListing:
    """Look at a folder; hidden and unfinished files are not among those that count.

    A listing is no single moment: a folder that changed meanwhile is listed again, unless it has a note whose new files
    are all there. Then only sources go, and these do not count; there may be thousands, so it would change for long.

    Raises:
        DataError: it cannot be read.
    """
    try:
        found, stable = _scan(folder)
        for _ in range(_LISTING_ATTEMPTS):
            if stable:
                break
            time.sleep(_CLOCK_TICK_NS / 1e9)
            found, stable = _scan(folder)
    except (FileNotFoundError, NotADirectoryError):
        return FolderListing({})
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}); look at its disk and owner") from None
    return found


def stamp_of(path: Path) -> Stamp:
    """What tells whether a file changed."""
    return _stamp(path.stat())


def arrived_at(path: Path, stamp: Stamp) -> float:
    """When a file came, seconds since 1970: the last change of it or its name; of files put together, the newest."""
    _, modified, changed = stamp
    return (modified if COMPACTED.fullmatch(path.name) else max(modified, changed)) / 1e9


def write_note(folder: Path, replacement: CompactionNote) -> None:
    """Write the note of a compaction; from then on its new files count once all are there.

    Raises:
        DataError: it cannot be written.
    """
    document = {
        "version": _VERSION,
        "files": sorted(replacement.files),
        "sources": sorted(replacement.sources),
    }
    atomic_write(folder / replacement.name, partial(_write, orjson.dumps(document)))


def _scan(folder: Path) -> tuple[FolderListing, bool]:
    """Everything, and whether it is what counted at one moment."""
    stable = True
    before = folder.stat().st_mtime_ns
    sizes: dict[str, Stamp] = {}
    names: set[str] = set()
    notes: list[CompactionNote] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            try:
                if entry.name.endswith(".parquet") and not entry.name.startswith((".", "_")) and entry.is_file():
                    sizes[entry.name] = _stamp(entry.stat())
                elif note_name := _NOTE_NAME.fullmatch(entry.name):
                    notes.append(_read(folder / entry.name, note_name[1]))
            except FileNotFoundError:
                stable = False
    if folder.stat().st_mtime_ns != before or time.time_ns() - _CLOCK_TICK_NS < before <= time.time_ns():
        stable = False
    hidden: set[str] = set()
    for note in notes:
        hidden |= note.sources if note.files <= sizes.keys() else note.files
    files = {folder / name: sizes[name] for name in sorted(sizes.keys() - hidden)}
    ending = any(note.files <= sizes.keys() for note in notes)
    return FolderListing(files, tuple(sorted(notes, key=lambda note: note.digest)), frozenset(names)), stable or ending


def _stamp(info: os.stat_result) -> Stamp:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _read(path: Path, digest: str) -> CompactionNote:
    try:
        document = orjson.loads(path.read_bytes())
        if document["version"] != _VERSION:
            raise DataError(f"{path}: is of version {document['version']}, this ackscope knows {_VERSION}")
        return CompactionNote(digest, frozenset(document["files"]), frozenset(document["sources"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise DataError(
            f"{path}: is damaged, and tells which files were put together; the folder is left alone: bring it back "
            f"from a copy, or remove it and what lies beside it and holds the same rows twice"
        ) from None


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
