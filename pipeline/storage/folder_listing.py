"""A consistent listing of one landing folder while others write, compact and remove files.

During a compaction the new files and their sources exist side by side, and a note names both. If all new files exist,
the sources are ignored; if one is missing, the new files are. So the folder switches at one instant, the rename of the
last new file, and a crash on either side of it is harmless.
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
from ackscope.object_path import ObjectPath, ObjectStatus, Place
from pipeline.storage.durable import atomic_write

# Size in bytes, then time of the last change of content (mtime) and of inode (ctime), nanoseconds since 1970.
Stamp = tuple[int, int, int]

# Names of compacted files: time of the newest source, digest of all source names, number.
COMPACTED = re.compile(r"compacted-\d{8}T\d{6}-[0-9a-f]{8}-\d{6}\.parquet")

_NOTE_NAME = re.compile(r"_replaces-([0-9a-f]{8})\.json")
_VERSION = 1
# The kernel updates folder times only every few milliseconds.
_CLOCK_TICK_NS = 20_000_000

_LISTING_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class CompactionNote:
    """The note of a compaction in progress.

    Attributes:
        digest: identifies it.
        files: the new files; all of them count, or none.
        sources: the files that they replace.
    """

    digest: str
    files: frozenset[str]
    sources: frozenset[str]

    @property
    def name(self) -> str:
        """File name of the note."""
        return f"_replaces-{self.digest}.json"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A landing folder at one moment.

    Attributes:
        files: those that count, sorted by name.
        notes: compactions in progress.
        names: everything in the folder.
    """

    files: dict[Place, Stamp]
    notes: tuple[CompactionNote, ...] = ()
    names: frozenset[str] = frozenset()


def list_folder(folder: Place) -> FolderListing:
    """List a folder, without hidden and unfinished files.

    A directory scan is not atomic: a folder that changed meanwhile is listed again, unless it has a note whose new
    files all exist. Then only sources are being removed, which do not count; there may be thousands, so the folder
    would keep changing.

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
        raise DataError(f"{folder}: cannot be read ({error.strerror}); check its disk and owner") from None
    return found


def stamp_of(path: Place) -> Stamp:
    """The values that change when a file changes."""
    return _stamp(path.stat())


def arrived_at(path: Place, stamp: Stamp) -> float:
    """When a file arrived, seconds since 1970: its last change or rename; for compacted files, their newest source."""
    _, modified, changed = stamp
    return (modified if COMPACTED.fullmatch(path.name) else max(modified, changed)) / 1e9


def write_note(folder: Path, replacement: CompactionNote) -> None:
    """Write the note of a compaction; from then on its new files count once all of them exist.

    Raises:
        DataError: it cannot be written.
    """
    document = {
        "version": _VERSION,
        "files": sorted(replacement.files),
        "sources": sorted(replacement.sources),
    }
    atomic_write(folder / replacement.name, partial(_write, orjson.dumps(document)))


def _scan(folder: Place) -> tuple[FolderListing, bool]:
    """The folder, and whether it was stable while it was scanned."""
    if isinstance(folder, ObjectPath):
        return _list_objects(folder), True
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
    files: dict[Place, Stamp] = {folder / name: sizes[name] for name in sorted(sizes.keys() - hidden)}
    ending = any(note.files <= sizes.keys() for note in notes)
    return FolderListing(files, tuple(sorted(notes, key=lambda note: note.digest)), frozenset(names)), stable or ending


def _list_objects(folder: ObjectPath) -> FolderListing:
    """Objects are not compacted, so nothing is hidden."""
    found = list(folder.iterdir())
    files: dict[Place, Stamp] = {
        it: _stamp(it.known)
        for it in found
        if it.known is not None and it.name.endswith(".parquet") and not it.name.startswith((".", "_"))
    }
    return FolderListing(files, names=frozenset(it.name for it in found))


def _stamp(info: os.stat_result | ObjectStatus) -> Stamp:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _read(path: Path, digest: str) -> CompactionNote:
    try:
        document = orjson.loads(path.read_bytes())
        if document["version"] != _VERSION:
            raise DataError(f"{path}: note has version {document['version']}, this ackscope reads {_VERSION}")
        return CompactionNote(digest, frozenset(document["files"]), frozenset(document["sources"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise DataError(
            f"{path}: is damaged (it records which files were compacted); the folder is left alone. Restore it "
            "from a copy, or remove it together with the files that hold the same rows twice"
        ) from None


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
