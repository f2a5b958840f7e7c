"""Many landing files become few: what is to be put together, and the steps that make it count.

(a) The new files are written to a hidden folder. (b) A note is written that names them and their sources. (c) They are
renamed in: with the last one the sources no longer count. (d) The sources are removed, (e) and then the note. A crash
leaves what `finish` brings to its end: forwards where all new files are in, else backwards.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.errors import DataError
from pipeline.storage.durable import remove, sync, unwritable
from pipeline.storage.footer import Contents
from pipeline.storage.landing import Landing, Partition
from pipeline.storage.listing import Replacement, Stamp, came, listing, stamp_of, write_note

LARGE = 64 * 2**20
"""Bytes from which on a file stays as it is."""

_WISHED = 128 * 2**20
_ONE = 192 * 2**20
"""Bytes: up to so many make one file, more are spread over files of about `_WISHED`."""

_SAMPLE_FILES, _SAMPLE_BYTES = 64, 32 * 2**20
_HIDDEN, _HALF_A_NOTE = ".compacted-", "._replaces-"


@dataclass(frozen=True, slots=True)
class Plan:
    """The files of a partition that are to become few.

    Attributes:
        sources: those files, with what tells whether they changed.
        rows: that count in them.
        bytes: of them.
    """

    partition: Partition
    sources: dict[Path, Stamp]
    rows: int
    bytes: int

    @property
    def digest(self) -> str:
        """Names this compaction: a new one of other files has another name."""
        names = "\n".join(sorted(path.name for path in self.sources))
        return hashlib.sha256(names.encode()).hexdigest()[:8]

    @property
    def newest(self) -> int:
        """Nanoseconds since 1970: when the newest source was written."""
        return max(modified for _, modified, _ in self.sources.values())

    def hidden(self, root: Path) -> Path:
        """The folder for the new files until they count."""
        return root / self.partition.folder / f"{_HIDDEN}{self.digest}.tmp"


@dataclass(frozen=True, slots=True)
class Look:
    """What a partition has for us.

    Attributes:
        plan: None where nothing is to be done.
        files, bytes: all that count.
        behind: those that are not rolled up for sure, and must wait.
    """

    plan: Plan | None
    files: int
    bytes: int
    behind: int


@contextmanager
def only_compaction(root: Path) -> Iterator[None]:
    """Refuse to work where another compaction does.

    Raises:
        DataError: one does, or the folder cannot be written.
    """
    try:
        lock = (root / "_compact.lock").open("wb")
    except OSError as error:
        raise unwritable(root / "_compact.lock", error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"--landing {root}: another `compact` works there; wait for its end") from None
        yield


def look(landing: Landing, partition: Partition, taken: float) -> Look:
    """Which files of a closed partition are to be put together.

    Only such as were rolled up before `taken`, seconds since 1970: a stream then need not look at what becomes of
    them. Those with columns beyond the contract stay, for these would be lost.

    Raises:
        DataError: the folder cannot be read.
    """
    held = landing.files(partition)
    stamps = {path: stamp for path, stamp in listing(landing.root / partition.folder).files.items() if path in held}
    ready = {path for path, stamp in stamps.items() if rolled_up(path, stamp, taken)}
    sources = {path: stamps[path] for path in sorted(ready) if _fit(held[path], stamps[path])}
    plan = None
    if len(sources) > 1:
        rows = sum(held[path].rows for path in sources)
        plan = Plan(partition, sources, rows, sum(size for size, _, _ in sources.values()))
    return Look(plan, len(stamps), sum(size for size, _, _ in stamps.values()), len(stamps) - len(ready))


def pieces(plan: Plan) -> int:
    """How many new files it takes.

    What many small files shrink by when they become one is found with some that lie together.
    """
    if plan.bytes <= _ONE:
        return 1
    paths = list(plan.sources)
    sample: list[Path] = []
    for path in paths[len(paths) // 2 :][:_SAMPLE_FILES]:
        sample.append(path)
        if sum(plan.sources[it][0] for it in sample) > _SAMPLE_BYTES:
            break
    before = sum(plan.sources[path][0] for path in sample)
    try:
        rows = pa.concat_tables([pq.read_table(path, columns=list(plan.partition.table.names)) for path in sample])
    except (pa.ArrowException, OSError):
        # Damaged, or older than its table: Spark finds that out.
        share = 1.0
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(rows.sort_by(plan.partition.table.time), sink, compression="zstd")
        share = min(1.0, sink.getvalue().size / before)
    return 1 if plan.bytes * share <= _ONE else round(plan.bytes * share / _WISHED)


def put_in(root: Path, plan: Plan, written: Sequence[Path]) -> int | None:
    """Steps (b) to (e), as the only writer of the rollups; the bytes of the new files.

    None where a source has changed or gone meanwhile: then nothing was done.

    Raises:
        DataError: the new files do not hold what the sources do, or the disk does not take them; nothing has changed.
    """
    folder = root / plan.partition.folder
    try:
        rows = sum(pq.read_metadata(path).num_rows for path in written)
        if rows != plan.rows:
            raise DataError(f"{folder}: {plan.rows} rows became {rows} when put together; its files stay as they are")
        for path in written:
            _make_durable(path, plan.newest)
        if any(stamp_of(path) != stamp for path, stamp in plan.sources.items()):
            return None
        names = [_name(plan, number) for number in range(len(written))]
        note = Replacement(plan.digest, frozenset(names), frozenset(path.name for path in plan.sources))
        write_note(folder, note)
        sync(folder)
        for path, name in zip(written, names, strict=True):
            path.rename(folder / name)
        sync(folder)
        _end(folder, note)
        return sum((folder / name).stat().st_size for name in names)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(folder, error) from None


def cut_off(root: Path, partition: Partition) -> bool:
    """Whether a crash left something of a compaction.

    Raises:
        DataError: the folder cannot be read.
    """
    found = listing(root / partition.folder)
    return bool(found.notes) or any(name.startswith((_HIDDEN, _HALF_A_NOTE)) for name in found.names)


def finish(root: Path, partition: Partition) -> None:
    """Bring to its end what a crash left, as the only writer of the rollups.

    Raises:
        DataError: the folder cannot be read or written.
    """
    folder = root / partition.folder
    found = listing(folder)
    try:
        for note in found.notes:
            if note.files <= found.names:
                _end(folder, note)
            else:
                _take_back(folder, note)
    except OSError as error:
        raise unwritable(folder, error) from None
    for name in found.names:
        if name.startswith(_HIDDEN):
            shutil.rmtree(folder / name, ignore_errors=True)
        elif name.startswith(_HALF_A_NOTE):
            remove(folder / name)


def discard(root: Path, plan: Plan) -> None:
    """Remove what of a plan was written and does not count."""
    shutil.rmtree(plan.hidden(root), ignore_errors=True)


def _end(folder: Path, note: Replacement) -> None:
    """Steps (d) and (e)."""
    for name in sorted(note.sources - note.files):
        (folder / name).unlink(missing_ok=True)
    sync(folder)
    (folder / note.name).unlink(missing_ok=True)


def _take_back(folder: Path, note: Replacement) -> None:
    for name in note.files:
        (folder / name).unlink(missing_ok=True)
    sync(folder)
    (folder / note.name).unlink(missing_ok=True)


def rolled_up(path: Path, stamp: Stamp, taken: float) -> bool:
    """Whether a file was there at `taken`, when all was rolled up; of files put together, their newest source tells."""
    return came(path, stamp) < taken


def _fit(held: Contents, stamp: Stamp) -> bool:
    return stamp[0] < LARGE and held.plain and not held.waiting


def _make_durable(path: Path, newest: int) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.utime(handle, ns=(newest, newest))
        os.fsync(handle)
    finally:
        os.close(handle)


def _name(plan: Plan, number: int) -> str:
    moment = datetime.fromtimestamp(plan.newest / 1e9, UTC).strftime("%Y%m%dT%H%M%S")
    return f"compacted-{moment}-{plan.digest}-{number:06d}.parquet"
