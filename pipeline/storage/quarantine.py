"""The place apart for files that are no good, and for rows of another time; nothing there is read again."""

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.errors import DataError
from pipeline.storage.durable import atomic_write

log = logging.getLogger(__name__)

FOLDER = "_quarantine"


def quarantine_file(root: Path, path: Path, reason: str) -> bool:
    """Move a file of the landing folder away, beside nothing of the same name, and say so in one line; was it moved?"""
    target = _unused_path(root / FOLDER / path.relative_to(root))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    except OSError as error:
        log.warning("%s: left out, %s; it cannot be moved away (%s)", path, reason, error.strerror)
        return False
    log.warning("%s: set apart in %s, %s", path, target.parent, reason)
    return True


def copy_misdated_rows(root: Path, path: Path, time: str, start: int, end: int) -> None:
    """Write the rows of a file that lie before `start` or from `end` on, microseconds since 1970, to a file apart.

    Once: where that file is, nothing is done. The rows stay in their own file, too, where they do not count.
    """
    relative = path.relative_to(root)
    target = root / FOLDER / relative.with_name(f"{relative.stem}.rows.parquet")
    if target.exists():
        return
    copied: list[int] = []
    try:
        with pq.ParquetFile(path) as file:
            atomic_write(target, partial(_copy, file, time, start, end, copied))
    except (DataError, OSError, pa.ArrowException) as error:
        with suppress(OSError):
            target.unlink(missing_ok=True)
        log.warning("%s: rows of another time are left out, and stay where they are (%s)", path, error)
        return
    log.warning(
        "%s: %d rows of another time are left out, a copy is in %s; was a clock wrong?", path, sum(copied), target
    )


def _copy(file: pq.ParquetFile, time: str, start: int, end: int, copied: list[int], sink: IO[bytes]) -> None:
    with pq.ParquetWriter(sink, file.schema_arrow, compression="zstd") as writer:
        for batch in _outside(file, time, start, end):
            writer.write_batch(batch)
            copied.append(batch.num_rows)


def _outside(file: pq.ParquetFile, time: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
    for batch in file.iter_batches():
        moments = batch.column(time).cast(pa.int64())
        rows = batch.filter(pc.or_(pc.less(moments, start), pc.greater_equal(moments, end)))
        if rows.num_rows:
            yield rows


def _unused_path(path: Path) -> Path:
    """`path`, or the first of `path.1`, `path.2` ... that is not taken."""
    candidate, number = path, 0
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate
