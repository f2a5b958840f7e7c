"""The quarantine folder: bad landing files, and copies of misdated rows. Nothing in it is read again."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.arrow_files import parquet_file
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, Place, move, relative
from pipeline.storage.durable import atomic_write

log = get_logger(__name__)

FOLDER = "_quarantine"


def quarantine_file(root: Place, path: Place, reason: str) -> bool:
    """Move a landing file to the quarantine, without overwriting; return whether it was moved."""
    target = _unused_path(root / FOLDER / relative(path, root))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        move(path, target)
    except OSError as error:
        log.warning("bad file cannot be quarantined, ignored", file=str(path), reason=reason, error=error.strerror)
        return False
    log.warning("bad file quarantined", file=str(path), folder=str(target.parent), reason=reason)
    return True


def copy_misdated_rows(root: Place, path: Place, time: str, start: int, end: int) -> None:
    """Copy the rows before `start` or from `end` on, microseconds since 1970, to a file in the quarantine.

    This is done once per file. The rows also stay in their landing file, where they are ignored.
    """
    inner = relative(path, root)
    target = root / FOLDER / inner.with_name(f"{inner.stem}.rows.parquet")
    if target.exists():
        return
    copied: list[int] = []
    try:
        with parquet_file(path) as file:
            atomic_write(target, partial(_copy, file, time, start, end, copied))
    except (DataError, OSError, pa.ArrowException) as error:
        with suppress(OSError):
            target.unlink(missing_ok=True)
        log.warning("misdated rows ignored, no copy in the quarantine", file=str(path), error=str(error))
        return
    log.warning("misdated rows ignored, check the clocks", file=str(path), count=sum(copied), copy=str(target))


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


def _unused_path(path: Place) -> Place:
    """`path`, or the first of `path.1`, `path.2` ... that does not exist."""
    candidate, number = path, 0
    while candidate.exists() if isinstance(candidate, ObjectPath) else os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate
