"""Minutes -> changes: all candidate change points are stored, and the reportable ones are published.

Shifts are searched in blocks of hours, each with some hours around it, so that the result depends on the minutes alone
and not on when they were searched. Only blocks near minutes that changed are searched again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.manifest import Manifest
from ackscope.object_path import Place
from ackscope.tables import CONSUMERS_1M
from ackscope.tables.arrow import arrow_schema
from pipeline.analysis.analysis_state import CANDIDATES
from pipeline.analysis.attach_queue import attach_queue
from pipeline.analysis.column_packing import ObjectMatrix, analyse
from pipeline.analysis.noise import noise
from pipeline.analysis.series import FAMILIES, MeasureFamily
from pipeline.analysis.shifts import FAST, HISTORY_MINUTES, LASTING_MINUTES, SLOW, DetectedShift, find_moving, shifts
from pipeline.frames import read_rollups
from pipeline.hours import HOUR

BLOCK_HOURS = 4

# Unknown from the series of an object; `attach_queue` fills it in.
_NO_QUEUE = None

# Hours around a block that its shifts depend on.
_BEFORE_HOURS, _AFTER_HOURS = HISTORY_MINUTES // 60, -(-LASTING_MINUTES // 60)

# Maximum hours searched together; fewer if they have more than `_MAX_ROWS` rows.
_MAX_SPAN_HOURS = 72

_MAX_ROWS = 4_000_000


def blocks_for(hours: set[int], known: set[int]) -> list[int]:
    """First hours of the blocks that have known minutes, and whose shifts depend on some of `hours`."""
    near = {hour + step for hour in hours for step in range(-_AFTER_HOURS, _BEFORE_HOURS + 1)}
    return sorted({hour - hour % BLOCK_HOURS for hour in near} & {hour - hour % BLOCK_HOURS for hour in known})


def portions(manifest: Manifest, first_hours: Sequence[int]) -> Iterator[list[int]]:
    """Blocks that are searched together."""
    rows: dict[int, int] = {}
    for family in FAMILIES:
        for it in manifest.files_for(family.source.name):
            for hour in it.parts:
                block = int(hour) - int(hour) % BLOCK_HOURS
                rows[block] = rows.get(block, 0) + it.rows // len(it.parts)
    portion: list[int] = []
    for block in first_hours:
        total = sum(rows.get(it, 0) for it in (*portion, block))
        if portion and (block + BLOCK_HOURS - portion[0] > _MAX_SPAN_HOURS or total > _MAX_ROWS):
            yield portion
            portion = []
        portion.append(block)
    if portion:
        yield portion


def search(spark: SparkSession, root: Place, manifest: Manifest, first_hours: Sequence[int]) -> pa.Table:
    """All shifts that begin in these blocks: rows of `CANDIDATES`."""
    start, end = first_hours[0] - _BEFORE_HOURS, first_hours[-1] + BLOCK_HOURS + _AFTER_HOURS
    found = [arrow_schema(CANDIDATES).empty_table()]
    for family in FAMILIES:
        if manifest.files_for(family.source.name, start, end):
            frame = family.of_minutes(read_rollups(spark, root, manifest, family.source, start, end))
            place = (F.unix_seconds("at") - start * HOUR) / 60
            judge = partial(find_candidates, family=family, start=start, first_hours=tuple(first_hours))
            rows = analyse(frame, place, (end - start) * 60, CANDIDATES, judge).toArrow()
            found.append(rows.cast(arrow_schema(CANDIDATES)))
    rows = pa.concat_tables(found)
    if not manifest.files_for(CONSUMERS_1M.name, start, end):
        return rows
    return attach_queue(rows, read_rollups(spark, root, manifest, CONSUMERS_1M, start, end), BLOCK_HOURS * HOUR)


def replace_blocks(known: pa.Table, first_hours: Sequence[int], found: pa.Table) -> pa.Table:
    """The known candidates with those of these blocks replaced."""
    hours = pc.divide(known[CANDIDATES.time].cast(pa.int64()), HOUR * 1_000_000)
    inside = pc.is_in(pc.subtract(hours, _modulo(hours)), pa.array(first_hours, pa.int64()))
    rows = pa.concat_tables([known.filter(pc.invert(inside)), found])
    return rows.sort_by([(name, "ascending") for name in CANDIDATES.key]).combine_chunks()


def find_candidates(objects: ObjectMatrix, family: MeasureFamily, start: int, first_hours: Sequence[int]) -> pa.Table:
    """The shifts of some objects, rows of `CANDIDATES`.

    Args:
        objects: their minutes from hour `start` on.
        family: their family.
        start: hours since 1970.
        first_hours: the blocks in which shifts begin.
    """
    rows = []
    for measure in family.shifting:
        values = objects.values[measure]
        for block in first_hours:
            low, high = max(0, (block - _BEFORE_HOURS - start) * 60), (block + BLOCK_HOURS + _AFTER_HOURS - start) * 60
            first, last = (block - start) * 60, (block + BLOCK_HOURS - start) * 60
            slices = values[:, low:high]
            for row in _candidate_rows(slices, measure, objects.columns["prefix"]):
                name = objects.columns["prefix"][row] + measure
                subject = (family.kind, objects.columns["vhost"][row], objects.columns["name"][row], name)
                for it, fast in _detect(slices[row], name):
                    if first <= it.at + low < last:
                        at = (start * 60 + low + it.at) * 60_000_000
                        shift_columns = (
                            it.before,
                            it.after,
                            abs(it.score),
                            it.minutes,
                            _NO_QUEUE,
                            it.sure,
                            it.back,
                            fast,
                        )
                        rows.append((at, *subject, *shift_columns))
    columns = zip(*rows, strict=True) if rows else [()] * len(CANDIDATES.columns)
    schema = arrow_schema(CANDIDATES)
    return pa.table(
        [pa.array(list(column), type=it.type) for column, it in zip(columns, schema, strict=True)], schema=schema
    )


def _detect(values: np.ndarray, measure: str) -> Iterator[tuple[DetectedShift, bool]]:
    """The shifts of one series, and whether the fast detector found them, which is only used for early reports."""
    scatter = noise(measure)
    for it in shifts(values, scatter, SLOW):
        yield it, False
    if scatter.rises or scatter.falls:
        for it in shifts(values, scatter, FAST):
            yield replace(it, sure=it.sure and scatter.reports_early(it.score)), True


def _candidate_rows(values: np.ndarray, measure: str, prefixes: Sequence[str]) -> list[int]:
    """Rows that vary enough; measures with prefixes use the noise model of their own name."""
    return [int(row) for row in find_moving(values, noise(f"{prefixes[0]}{measure}"))] if prefixes else []


def _modulo(hours: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.subtract(hours, pc.multiply(pc.divide(hours, BLOCK_HOURS), BLOCK_HOURS))
