"""Reads what was recorded of one cluster for some time: landing rows, or minutes of the rollups."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ackscope.arrow_files import dataset
from ackscope.errors import DataError
from ackscope.manifest import read as read_manifest
from ackscope.object_path import Place, place
from ackscope.tables import MINUTES, POLL_SAMPLES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.backtest.rows import MINUTES_OF, SAMPLES, RecordedRows, of_landing, of_minutes
from pipeline.hours import HOUR
from pipeline.storage.landing import Landing

LANDED = (*SAMPLES.values(), POLL_SAMPLES)
"""Landing tables that are replayed."""

_TRIES = 5


def read_landing(
    root: Place, cluster: str, files: Mapping[str, Sequence[str]], start: float, end: float
) -> RecordedRows:
    """Return the landing rows from `start` to before `end`, seconds since 1970.

    Args:
        root: the landing folder.
        cluster: its name.
        files: table -> the files that may have such rows; listed again if one was merged or removed meanwhile.
        start: first moment.
        end: moment after the last.

    Raises:
        DataError: a file cannot be read.
    """
    listed: Mapping[str, Sequence[str]] | None = files
    for _ in range(_TRIES):
        try:
            given = listed or _listed(root, cluster, start, end)
            return of_landing({table: _read(table, given.get(table.name, ()), start, end) for table in LANDED})
        except FileNotFoundError:
            listed = None
    raise DataError(f"{root}: files of cluster {cluster} vanished while they were read; run it again")


def read_minutes(root: Place, cluster: str, start: float, end: float) -> RecordedRows:
    """Return the minutes from `start` to before `end`, seconds since 1970.

    Raises:
        DataError: a file cannot be read.
    """
    first, last = int(start // HOUR), int(-(-end // HOUR))
    for _ in range(_TRIES):
        manifest = read_manifest(root, cluster)
        paths = {it: [str(path) for path in manifest.paths(root, it.name, first, last)] for it in MINUTES_OF.values()}
        try:
            return of_minutes({MINUTES[it.name]: _read(it, found, start, end) for it, found in paths.items()})
        except FileNotFoundError:
            continue
    raise DataError(f"{root}: files of cluster {cluster} vanished while they were read; run it again")


def _listed(root: Place, cluster: str, start: float, end: float) -> dict[str, list[str]]:
    landing = Landing(root)
    return {it.name: [str(path) for path in landing.covering(it, cluster, int(start), int(end))] for it in LANDED}


def _read(table: Table, paths: Iterable[str], start: float, end: float) -> pa.Table:
    schema, files = arrow_schema(table), list(paths)
    if not files:
        return schema.empty_table()
    low, high = (pa.scalar(round(it * 1_000_000), pa.int64()).cast(pa.timestamp("us", tz="UTC")) for it in (start, end))
    inside = (pc.field(table.time) >= low) & (pc.field(table.time) < high)
    try:
        return dataset([*map(place, files)], schema).to_table(filter=inside)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"a file of {table.name} cannot be read: {str(error).splitlines()[0]}") from None
