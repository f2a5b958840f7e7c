"""Write one data file of a table: the same function in the driver and in an executor, so the files are the same.

A plan says which rows a file gets and where its other rows are now. Writing it needs nothing else, and changes nothing
that counts: the file has a name made of its content, and counts once a transaction commits it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ackscope.manifest import DataFile
from ackscope.tables import BASELINES, MINUTES, Table
from pipeline.hours import HOUR
from pipeline.storage.digest import digest, digest_of
from pipeline.storage.layout import FileSlot, hours_per_digest, row_hours
from pipeline.storage.row_order import read_hours, write_rows
from pipeline.storage.store import FileStore

# Start and end (exclusive), seconds since 1970; for `baselines`, hours of the week times 3,600.
TimeRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """One data file that is to be written.

    Attributes:
        table: its table.
        cluster: its cluster.
        slot: its place in the table.
        replaced: ranges whose rows are replaced, sorted and apart.
        existing: the files that have the slot's rows now.
    """

    table: Table
    cluster: str
    slot: FileSlot
    replaced: tuple[TimeRange, ...]
    existing: tuple[DataFile, ...]

    @property
    def hours(self) -> list[int]:
        """The hours that are replaced at least in part."""
        return sorted({hour for start, end in self.replaced for hour in range(start // HOUR, -(-end // HOUR))})


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The result of a plan.

    Attributes:
        path: relative to the rollup folder; "" if the slot has no rows now.
        rows: number of rows.
        parts: digest of each hour or day, as in `DataFile`.
    """

    path: str = ""
    rows: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The rows of one hour or day, loaded on demand."""

    digest: str
    rows: Callable[[], pa.Table]


def write_file(store: FileStore, plan: FilePlan, rows: pa.Table) -> WrittenFile:
    """Write the file of a plan, unless it is there already.

    Args:
        store: where.
        plan: what.
        rows: the new rows in the ranges that are replaced, sorted by time.

    Raises:
        DataError: a file cannot be read or written.
    """
    chunks = _existing_chunks(store, plan) | _replaced_chunks(store, plan, rows)
    found = {start: chunk for start, chunk in sorted(chunks.items()) if chunk is not None}
    if not found:
        return WrittenFile()
    parts = {str(start): chunk.digest for start, chunk in found.items()}
    slot = _dated(plan, rows)
    same = [it for it in plan.existing if it.parts == parts and (it.start, it.end) == (slot.start, slot.end)]
    path = same[0].path if same else slot.path(plan.table, plan.cluster, _name(parts))
    # It may be unreferenced and about to be vacuumed.
    known = store.renew(path)
    if known is not None:
        return WrittenFile(path, known, parts)
    written: list[int] = []

    def fill(file: IO[bytes]) -> None:
        in_order = (chunk.rows() for chunk in found.values())
        written.append(write_rows(file, plan.table, in_order, multi_hour=_is_multi_hour(plan.table, slot)))

    store.write(path, fill)
    return WrittenFile(path, sum(written), parts)


def hour_ranges(hours: Iterable[int]) -> list[TimeRange]:
    """Sorted hours as ranges that are apart."""
    ranges: list[TimeRange] = []
    for hour in hours:
        start = hour * HOUR
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], start + HOUR)
        else:
            ranges.append((start, start + HOUR))
    return ranges


def rows_of_plan(plan: FilePlan, rows: pa.Table) -> pa.Table:
    """Of rows sorted by time, those that may belong to a plan."""
    numbers = row_hours(plan.table, rows)
    if plan.table.name == BASELINES.name:
        return rows.filter(pc.equal(numbers, plan.slot.start))
    first, last = np.searchsorted(numbers.to_numpy(), [plan.slot.start, plan.slot.end])
    return rows.slice(first, last - first)


def read_part(store: FileStore, table: Table, it: DataFile, start: int, end: int) -> pa.Table:
    """The rows of a file from hour `start` to before hour `end`, sorted by time.

    Raises:
        DataError: it cannot be read.
    """
    filesystem, path = store.location(it.path)
    return read_hours(path, table, start, end, multi_hour=_is_multi_hour(table, it), filesystem=filesystem)


def encoded(written: WrittenFile) -> dict[str, Any]:
    """Plain values, for JSON."""
    return {"path": written.path, "rows": written.rows, "parts": dict(written.parts)}


def _existing_chunks(store: FileStore, plan: FilePlan) -> dict[int, _Chunk | None]:
    width = hours_per_digest(plan.table)
    return {
        int(start): _Chunk(text, partial(read_part, store, plan.table, it, int(start), int(start) + width))
        for it in plan.existing
        for start, text in it.parts.items()
    }


def _replaced_chunks(store: FileStore, plan: FilePlan, rows: pa.Table) -> dict[int, _Chunk | None]:
    """The chunks that have new rows, or lose some; None: nothing is left."""
    table, width = plan.table, hours_per_digest(plan.table)
    chunks: dict[int, _Chunk | None] = {}
    numbers = row_hours(table, rows).to_numpy()
    for start in sorted({hour - hour % width for hour in plan.hours}):
        # Baselines have one hour of the week a file; all others are sorted by time.
        first, last = (
            (0, len(numbers)) if table.name == BASELINES.name else np.searchsorted(numbers, [start, start + width])
        )
        part = rows.slice(first, last - first)
        if not _covers(plan.replaced, start * HOUR, (start + width) * HOUR):
            part = part.filter(pa.array(_inside(table, part, plan.replaced)))
            old = [read_part(store, table, it, start, start + width) for it in plan.existing if str(start) in it.parts]
            remaining = [it.filter(pa.array(~_inside(table, it, plan.replaced))) for it in old]
            part = _in_order_of_time(table, [*remaining, part])
        part = part.combine_chunks()
        chunks[start] = _Chunk(digest(part), partial(_identity, part)) if part.num_rows else None
    return chunks


def _covers(ranges: Sequence[TimeRange], start: int, end: int) -> bool:
    return any(low <= start and end <= high for low, high in ranges)


def _inside(table: Table, rows: pa.Table, ranges: Sequence[TimeRange]) -> npt.NDArray[np.bool_]:
    """Which rows are in the ranges."""
    edges = np.array(ranges, np.int64).reshape(-1) * 1_000_000
    inside: npt.NDArray[np.bool_] = (
        np.searchsorted(edges, rows[table.time].cast(pa.int64()).to_numpy(), "right") % 2 == 1
    )
    return inside


def _in_order_of_time(table: Table, parts: Sequence[pa.Table]) -> pa.Table:
    """Tables without a common moment as one; time is the first column of the key, so the rest of the order stays."""
    parts = [it for it in parts if it.num_rows] or parts[-1:]
    rows = pa.concat_tables(parts)
    if len(parts) == 1:
        return rows
    return rows.take(pa.array(np.argsort(rows[table.time].cast(pa.int64()).to_numpy(), kind="stable")))


def _dated(plan: FilePlan, rows: pa.Table) -> FileSlot:
    """The slot; that of baselines with the date of their latest `made_at`."""
    if plan.table.name != BASELINES.name or not rows.num_rows:
        return plan.slot
    return replace(plan.slot, day=pc.max(rows[plan.table.time]).as_py().date())


def _is_multi_hour(table: Table, it: FileSlot | DataFile) -> bool:
    """Whether a file holds minutes of several hours; files of days are rewritten too often to sort by object."""
    return table.name in MINUTES and it.end - it.start > hours_per_digest(table)


def _name(parts: Mapping[str, str]) -> str:
    return digest_of(text for item in parts.items() for text in item)


def _identity(rows: pa.Table) -> pa.Table:
    return rows
