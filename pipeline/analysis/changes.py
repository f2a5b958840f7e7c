"""Minutes -> changes: every shift that may be one is remembered, and those that are news are told.

Shifts are looked for in blocks of hours, each with some hours around it, so that what is found depends on the minutes
alone and not on when it was looked for. Only blocks near minutes that changed are looked through again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.manifest import Manifest
from ackscope.tables import CONSUMERS_1M
from pipeline.analysis.memory import CANDIDATES
from pipeline.analysis.noise import noise
from pipeline.analysis.packed import Objects, judged
from pipeline.analysis.series import FAMILIES, Family
from pipeline.analysis.shifts import HISTORY, LASTING, PATIENT, QUICK, Found, moving, shifts
from pipeline.analysis.taking import taking
from pipeline.frames import rolled_up
from pipeline.hours import HOUR
from pipeline.schema import arrow_schema

BLOCK = 4
"""Hours."""

_NO_QUEUE = None
"""Not known from the series of an object; `taking` finds it."""

_BEFORE, _AFTER = HISTORY // 60, -(-LASTING // 60)
"""Hours around a block that its shifts depend on."""

_WIDEST = 72
"""Hours that are looked through at once, at most; fewer where they have more than so many rows."""

_ROWS_AT_ONCE = 4_000_000


def blocks(hours: set[int], known: set[int]) -> list[int]:
    """The first hours of the blocks that have known minutes, and whose shifts depend on some of `hours`."""
    near = {hour + step for hour in hours for step in range(-_AFTER, _BEFORE + 1)}
    return sorted({hour - hour % BLOCK for hour in near} & {hour - hour % BLOCK for hour in known})


def portions(manifest: Manifest, wanted: Sequence[int]) -> Iterator[list[int]]:
    """Blocks that are looked through at once."""
    rows: dict[int, int] = {}
    for family in FAMILIES:
        for it in manifest.files_for(family.source.name):
            for hour in it.parts:
                block = int(hour) - int(hour) % BLOCK
                rows[block] = rows.get(block, 0) + it.rows // len(it.parts)
    portion: list[int] = []
    for block in wanted:
        total = sum(rows.get(it, 0) for it in (*portion, block))
        if portion and (block + BLOCK - portion[0] > _WIDEST or total > _ROWS_AT_ONCE):
            yield portion
            portion = []
        portion.append(block)
    if portion:
        yield portion


def search(spark: SparkSession, root: Path, manifest: Manifest, wanted: Sequence[int]) -> pa.Table:
    """All shifts that begin in these blocks: rows of `CANDIDATES`."""
    start, end = wanted[0] - _BEFORE, wanted[-1] + BLOCK + _AFTER
    found = [arrow_schema(CANDIDATES).empty_table()]
    for family in FAMILIES:
        if manifest.files_for(family.source.name, start, end):
            frame = family.of_minutes(rolled_up(spark, root, manifest, family.source, start, end))
            place = (F.unix_seconds("at") - start * HOUR) / 60
            judge = partial(candidates, family=family, start=start, wanted=tuple(wanted))
            found.append(judged(frame, place, (end - start) * 60, CANDIDATES, judge))
    rows = pa.concat_tables(found)
    if not manifest.files_for(CONSUMERS_1M.name, start, end):
        return rows
    return taking(rows, rolled_up(spark, root, manifest, CONSUMERS_1M, start, end), BLOCK * HOUR)


def replaced(known: pa.Table, wanted: Sequence[int], found: pa.Table) -> pa.Table:
    """What is known, with what was found in these blocks in the place of what was found in them before."""
    hours = pc.divide(known[CANDIDATES.time].cast(pa.int64()), HOUR * 1_000_000)
    inside = pc.is_in(pc.subtract(hours, _modulo(hours)), pa.array(wanted, pa.int64()))
    rows = pa.concat_tables([known.filter(pc.invert(inside)), found])
    return rows.sort_by([(name, "ascending") for name in CANDIDATES.key]).combine_chunks()


def candidates(objects: Objects, family: Family, start: int, wanted: Sequence[int]) -> pa.Table:
    """The shifts of some objects, rows of `CANDIDATES`.

    Args:
        objects: their minutes from hour `start` on.
        family: what they are.
        start: hours since 1970.
        wanted: the blocks in which shifts begin.
    """
    rows = []
    for measure in family.shifting:
        values = objects.values[measure]
        for block in wanted:
            low, high = max(0, (block - _BEFORE - start) * 60), (block + BLOCK + _AFTER - start) * 60
            first, last = (block - start) * 60, (block + BLOCK - start) * 60
            slices = values[:, low:high]
            for row in _promising(slices, measure, objects.columns["prefix"]):
                name = objects.columns["prefix"][row] + measure
                subject = (family.kind, objects.columns["vhost"][row], objects.columns["name"][row], name)
                for it, soon in _found(slices[row], name):
                    if first <= it.at + low < last:
                        at = (start * 60 + low + it.at) * 60_000_000
                        told = (it.before, it.after, abs(it.score), it.minutes, _NO_QUEUE, it.sure, it.back, soon)
                        rows.append((at, *subject, *told))
    columns = zip(*rows, strict=True) if rows else [()] * len(CANDIDATES.columns)
    schema = arrow_schema(CANDIDATES)
    return pa.table(
        [pa.array(list(column), type=it.type) for column, it in zip(columns, schema, strict=True)], schema=schema
    )


def _found(values: np.ndarray, measure: str) -> Iterator[tuple[Found, bool]]:
    """The shifts of one series; whether the quick look found them, which is only for what may be told soon."""
    scatter = noise(measure)
    for it in shifts(values, scatter, PATIENT):
        yield it, False
    if scatter.rises or scatter.falls:
        for it in shifts(values, scatter, QUICK):
            yield replace(it, sure=it.sure and scatter.soon(it.score)), True


def _promising(values: np.ndarray, measure: str, prefixes: Sequence[str]) -> list[int]:
    """Rows that move enough; of a measure with prefixes, all are of the noise of its own name."""
    return [int(row) for row in moving(values, noise(f"{prefixes[0]}{measure}"))] if prefixes else []


def _modulo(hours: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.subtract(hours, pc.multiply(pc.divide(hours, BLOCK), BLOCK))
