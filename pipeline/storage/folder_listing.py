"""A consistent listing of one landing folder while others write, compact and remove files.

During a compaction the new files and their sources exist side by side, and a note names both. If all new files exist,
the sources are ignored; if one is missing, the new files are. So the folder switches at one instant, the rename of the
last new file, and a crash on either side of it is harmless.

A bucket has no renames. There a compacted file counts only if the note of its folder names it, and the folder switches
with the conditional put of that note, which stays. Sources are removed later, so a listing is complete if the note is
read after the names: who did not see the note saw all sources, and who saw it knows what replaced them.
"""

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson

from ackscope.errors import DataError
from ackscope.object_path import ObjectPath, ObjectStatus, ObjectStorageError, Place
from pipeline.storage.durable import atomic_write

# Size in bytes, then time of the last change of content (mtime) and of inode (ctime), nanoseconds since 1970.
Stamp = tuple[int, int, int]

# Names of compacted files: time of the newest source, digest of all source names, number.
COMPACTED = re.compile(r"compacted-(\d{8}T\d{6})-[0-9a-f]{8}-\d{6}\.parquet")

OBJECT_NOTE = "_compacted.json"
"""Name of the note of a folder in a bucket."""

_NOTE_NAME = re.compile(r"_replaces-([0-9a-f]{8})\.json")
_VERSION = 1
# The kernel updates folder times only every few milliseconds.
_CLOCK_TICK_NS = 20_000_000

_LISTING_ATTEMPTS = 100
# Of a folder in a bucket, while files that its note names are not there yet, or not any more.
_OBJECT_ATTEMPTS = 3


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
class ObjectMerge:
    """One compaction of a folder in a bucket.

    Attributes:
        files: the new files.
        sources: the files that they replace.
    """

    files: frozenset[str]
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class ObjectNote:
    """All compactions of a folder in a bucket.

    Attributes:
        number: increases with every version.
        merges: the oldest first; a later one may replace the files of an earlier one.
        stored: its version in the storage; "" if there is none.
    """

    number: int = 0
    merges: tuple[ObjectMerge, ...] = ()
    stored: str = ""

    @property
    def files(self) -> frozenset[str]:
        """The compacted files that count."""
        return frozenset[str]().union(*(it.files for it in self.merges)) - self.sources

    @property
    def sources(self) -> frozenset[str]:
        """The files that do not count any more."""
        return frozenset[str]().union(*(it.sources for it in self.merges))


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
    except ObjectStorageError:
        raise
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}); check its disk and owner") from None
    return found


def is_landing_file(name: str) -> bool:
    """Whether a file of this name holds landing rows; others are hidden, unfinished or notes."""
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def stamp_of(path: Place) -> Stamp:
    """The values that change when a file changes."""
    return stamp_of_status(path.stat())


def arrived_at(path: Place, stamp: Stamp) -> float:
    """When a file arrived, seconds since 1970: its last change or rename; for compacted files, their newest source.

    The time of an object cannot be set; that of the newest source is in its name, in whole seconds.
    """
    _, modified, changed = stamp
    compacted = COMPACTED.fullmatch(path.name)
    if compacted and isinstance(path, ObjectPath):
        return datetime.strptime(compacted[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp()
    return (modified if compacted else max(modified, changed)) / 1e9


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
        return listed_objects(*read_folder(folder)), True
    stable = True
    before = folder.stat().st_mtime_ns
    sizes: dict[str, Stamp] = {}
    names: set[str] = set()
    notes: list[CompactionNote] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            try:
                if is_landing_file(entry.name) and entry.is_file():
                    sizes[entry.name] = stamp_of_status(entry.stat())
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


def read_folder(folder: ObjectPath) -> tuple[list[ObjectPath], ObjectNote]:
    """The objects of a folder in a bucket, `known`, and its note.

    Raises:
        DataError: the note is damaged, or the storage cannot be used.
    """
    found, note = list[ObjectPath](), ObjectNote()
    for _ in range(_OBJECT_ATTEMPTS):
        found = [it for it in folder.iterdir() if it.known is not None]
        names = {it.name for it in found}
        # After the names, as the module says.
        note = _read_object_note(folder) if OBJECT_NOTE in names else ObjectNote()
        if note.files <= names:
            break
    return found, note


def listed_objects(found: Iterable[ObjectPath], note: ObjectNote) -> FolderListing:
    """The listing of a folder in a bucket with these objects and this note."""
    merged, replaced = note.files, note.sources
    there = [it for it in sorted(found) if is_landing_file(it.name) and it.name not in replaced]
    files: dict[Place, Stamp] = {
        it: stamp_of_status(it.known)
        for it in there
        if it.known is not None and (it.name in merged or not COMPACTED.fullmatch(it.name))
    }
    return FolderListing(files, names=frozenset(it.name for it in found))


def write_object_note(folder: ObjectPath, before: ObjectNote, merges: Sequence[ObjectMerge]) -> ObjectNote:
    """Replace the note of a folder in a bucket, if it still is the one that was read; return the new one.

    Raises:
        ConflictError: somebody else replaced it.
        ObjectStorageError: the storage cannot be used.
    """
    after = ObjectNote(before.number + 1, tuple(merges))
    document = {
        "version": _VERSION,
        "number": after.number,
        "merges": [{"files": sorted(it.files), "sources": sorted(it.sources)} for it in after.merges],
    }
    return replace(after, stored=(folder / OBJECT_NOTE).write_version(orjson.dumps(document), before.stored))


def _read_object_note(folder: ObjectPath) -> ObjectNote:
    path = folder / OBJECT_NOTE
    try:
        content, stored = path.read_version()
        document = _parsed(path, content)
        merges = tuple(ObjectMerge(frozenset(it["files"]), frozenset(it["sources"])) for it in document["merges"])
        return ObjectNote(int(document["number"]), merges, stored)
    except FileNotFoundError:
        return ObjectNote()
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"{path}: is damaged (it records which files were compacted); the folder is left alone. Restore it from a "
            "copy or an older version of the object"
        ) from None


def stamp_of_status(info: os.stat_result | ObjectStatus) -> Stamp:
    """The values that change when a file changes, of one that was looked at already."""
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _parsed(path: Place, content: bytes) -> Any:
    """The document of a note; raises `DataError` if another version of ackscope wrote it."""
    document = orjson.loads(content)
    if document["version"] != _VERSION:
        raise DataError(f"{path}: note has version {document['version']}, this ackscope reads {_VERSION}")
    return document


def _read(path: Path, digest: str) -> CompactionNote:
    try:
        document = _parsed(path, path.read_bytes())
        return CompactionNote(digest, frozenset(document["files"]), frozenset(document["sources"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise DataError(
            f"{path}: is damaged (it records which files were compacted); the folder is left alone. Restore it "
            "from a copy, or remove it together with the files that hold the same rows twice"
        ) from None


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)
