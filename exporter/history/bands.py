"""Reads the baseline bands of one cluster and hour of the week from the rollups.

Imported only if used: Arrow alone takes 40 MB of memory.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ackscope import manifest
from ackscope.arrow_files import parquet_file
from ackscope.baselines import HOUR_OF_DAY, HOUR_OF_WEEK, NOT_YET, Band, Baselines, NoBand, NotYet, Subject
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import Place
from ackscope.tables import BASELINES
from ackscope.tables.arrow import arrow_schema

log = get_logger(__name__)

MAX_BANDS = 500_000
"""Upper bound of bands read per cluster: about 150 MB."""

_REPAIR = "repair it with `ackscope pipeline run`"
_AGAIN = 3
"""Attempts before giving up: a file may be replaced between reading the manifest and opening it."""
_COLUMNS = ("kind", "vhost", "name", "measure", "scope", "values", "low", "middle", "high")


def read_bands(root: Place, cluster: str, hour: int) -> tuple[Baselines, tuple[str, ...]]:
    """Read the baselines of a cluster for an hour of the week.

    Returns:
        the baselines, empty if the pipeline has not made any yet, and the immutable files that they come from.

    Raises:
        DataError: the manifest, or a file that it names, cannot be read.
    """
    missing = ""
    for _ in range(_AGAIN):
        paths = band_files(root, cluster, hour)
        try:
            return _read(root, paths, hour), paths
        except FileNotFoundError as error:
            missing = error.filename
    raise DataError(f"{missing}: listed in the manifest but missing; {_REPAIR}")


def band_files(root: Place, cluster: str, hour: int) -> tuple[str, ...]:
    """The files of that hour, relative to the root.

    Raises:
        DataError: the manifest cannot be read.
    """
    return tuple(it.path for it in manifest.read(root, cluster).files_for(BASELINES.name, hour, hour + 1))


def _read(root: Place, paths: Sequence[str], hour: int) -> Baselines:
    bands: dict[Subject, Band | NotYet] = {}
    made: list[float] = []
    for path in paths:
        table = _table(root / path, hour, MAX_BANDS - len(bands))
        if table.num_rows and not table[BASELINES.time].null_count:
            made.append(pc.max(table[BASELINES.time]).cast(pa.timestamp("us", tz="UTC")).value / 1e6)
        try:
            bands.update(_rows(table))
        except UnicodeDecodeError:
            raise DataError(f"{root / path}: has a name that is not text; {_REPAIR}") from None
    return Baselines(hour_of_week=hour, made_at=max(made, default=None), bands=bands)


def _table(path: Place, hour: int, most: int) -> pa.Table:
    try:
        with parquet_file(path) as file:
            lacking = sorted(set(BASELINES.names) - set(file.schema_arrow.names))
            if lacking:
                raise DataError(f"{path}: column {lacking[0]!r} is missing; {_REPAIR}")
            wrong = sorted(
                it.name for it in arrow_schema(BASELINES) if file.schema_arrow.field(it.name).type != it.type
            )
            if wrong:
                raise DataError(f"{path}: column {wrong[0]!r} is of another type; {_REPAIR}")
            table = file.read(columns=list(BASELINES.names), use_threads=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from None
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or "corrupt file"
        raise DataError(f"{path}: cannot be read ({why}); {_REPAIR}") from None
    ours = table.filter(pc.equal(table["hour_of_week"], hour))
    if ours.num_rows > most:
        log.warning("too many bands; the rest is ignored", file=str(path), count=ours.num_rows, limit=most)
        ours = ours.slice(0, most)
    return ours


def _rows(table: pa.Table) -> Iterator[tuple[Subject, Band | NotYet]]:
    unknown: dict[int, NotYet] = {}
    columns = [_plain(table[name]) for name in _COLUMNS]
    for kind, vhost, name, measure, scope, values, low, middle, high in zip(*columns, strict=True):
        subject = (kind, vhost, name, measure)
        if scope in {HOUR_OF_WEEK, HOUR_OF_DAY} and None not in {low, middle, high}:
            yield subject, Band(low, middle, high, scope, values)
        else:
            days = values if scope == NOT_YET else 0
            yield subject, unknown.setdefault(days, NotYet(NoBand.FEW_DAYS if days else NoBand.UNKNOWN, days))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; equal texts share one object."""
    if not pa.types.is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    coded = column.combine_chunks().dictionary_encode()
    words = coded.dictionary.to_pylist()
    return [None if index is None else words[index] for index in coded.indices.to_pylist()]
