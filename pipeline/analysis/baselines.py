"""Hours -> baselines: the bands of all hours of the week.

An hour of the day is the unit: the seven hours of the week that it is part of are made of the same hours, of the last
eight weeks. After a new hour only its own seven are made again.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.baselines import hour_of_week
from ackscope.manifest import Manifest
from ackscope.tables import BASELINES, HOURS
from pipeline.analysis.bands import DAYS, SCOPES, Bands, bands
from pipeline.analysis.cluster import CLUSTER
from pipeline.analysis.noise import noise
from pipeline.analysis.packed import Objects, judged
from pipeline.analysis.series import FAMILIES, Family
from pipeline.frames import rolled_up
from pipeline.hours import HOUR
from pipeline.schema import arrow_schema

WEEKS = 8
_SPAN = WEEKS * 7
"""Days that a band is made of, at most."""

_GONE = 14
"""Days after which an object that was not seen any more has no band."""

BANDED = (*(family for family in FAMILIES if family.banded), CLUSTER)
"""What has bands: every kind of object that lives long enough, and the cluster as a whole."""

_ROWS_AT_ONCE = 4_000_000
_LOW, _HIGH = "_low", "_high"


def portions(manifest: Manifest, wanted: Sequence[int]) -> Iterator[list[int]]:
    """Hours of the day that are worked off at once."""
    sources = {family.source.name for family in BANDED}
    rows = sum(it.rows for name in sources for it in manifest.files_for(HOURS[name].name))
    step = max(1, _ROWS_AT_ONCE * 24 // max(rows, 1))
    for start in range(0, len(wanted), step):
        yield list(wanted[start : start + step])


def build(spark: SparkSession, root: Path, manifest: Manifest, wanted: Sequence[int], newest: int) -> pa.Table:
    """The bands of the hours of the week that these hours of the day are part of: rows of `BASELINES`.

    Args:
        spark: the session.
        root: the rollup folder.
        manifest: what counts in it.
        wanted: hours of the day.
        newest: the newest hour that has rows, since 1970.
    """
    last = newest // 24
    first = last - _SPAN + 1
    found = [arrow_schema(BASELINES).empty_table()]
    for family in BANDED:
        table = HOURS[family.source.name]
        if manifest.files_for(table.name, first * 24, newest + 1):
            rows = rolled_up(spark, root, manifest, table, first * 24, newest + 1)
            frame = family.of_hours(rows.where(F.hour(table.time).isin(list(wanted))))
            hour = F.floor(F.unix_seconds("at") / HOUR) - first * 24
            judge = partial(rows_of, family=family, first=first, wanted=tuple(wanted), newest=newest)
            found.append(judged(frame, hour, _SPAN * 24, BASELINES, judge))
    return pa.concat_tables(found)


def rows_of(objects: Objects, family: Family, first: int, wanted: Sequence[int], newest: int) -> pa.Table:
    """The bands of some objects, rows of `BASELINES`.

    Args:
        objects: their hours from the beginning of day `first` on.
        family: what they are.
        first: days since 1970.
        wanted: hours of the day.
        newest: the newest hour that has rows, since 1970.
    """
    days = np.arange(first, first + _SPAN)
    made = []
    for hour in wanted:
        # Today has this hour already, or not yet: eight weeks of it in either case.
        end = newest - (newest - hour) % 24 + 1
        for measure in family.measures:
            of_day = {
                name: objects.values[name][:, hour::24]
                for name in (measure, measure + _LOW, measure + _HIGH)
                if name in objects.values
            }
            for weekday in range(7):
                own = (days + 3) % 7 == weekday
                found = bands(
                    of_day[measure],
                    own,
                    noise(_name(objects, measure)),
                    of_day.get(measure + _LOW),
                    of_day.get(measure + _HIGH),
                )
                there = np.any(~np.isnan(of_day[measure][:, -_GONE:]), axis=1)
                week_hour = hour_of_week((weekday - 3) % 7 * 86400.0 + hour * HOUR)
                made.append(_table(objects, family.kind, measure, found, there, week_hour, end))
    return pa.concat_tables([arrow_schema(BASELINES).empty_table(), *made])


def _name(objects: Objects, measure: str) -> str:
    """A measure by a name that `noise` knows; all prefixes of one family scatter alike."""
    return (objects.columns["prefix"][0] if len(objects) else "") + measure


def _table(
    objects: Objects, kind: str, measure: str, found: Bands, there: np.ndarray, week_hour: int, end: int
) -> pa.Table:
    index = np.flatnonzero(there & (found.values > 0))
    taken = {name: np.array(column, dtype=object)[index] for name, column in objects.columns.items()}
    scope = found.scope[index]
    reasons = [None if it else f"{days} of {DAYS} days" for it, days in zip(scope, found.values[index], strict=True)]
    numbers = (found.low[index], found.middle[index], found.high[index])
    columns = [
        pa.array(np.full(len(index), end * HOUR * 1_000_000), pa.timestamp("us", tz="UTC")),
        np.full(len(index), week_hour),
        pa.array([kind] * len(index), pa.string()),
        pa.array(taken["vhost"], pa.string()),
        pa.array(taken["name"], pa.string()),
        pa.array(taken["prefix"] + measure, pa.string()),
        pa.array([SCOPES[it] for it in scope], pa.string()),
        found.values[index],
        *(pa.array(it, pa.float64(), from_pandas=True) for it in numbers),
        pa.array(reasons, pa.string()),
    ]
    return pa.table(columns, schema=arrow_schema(BASELINES))
