"""Compute baselines from the tables of hours: the bands of all 168 hours of the week.

The unit of work is an hour of the day: its seven hours of the week are computed from the same hours of the last eight
weeks. A new hour only affects its own seven.
"""

from collections.abc import Iterator, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.baselines import hour_of_week
from ackscope.manifest import Manifest
from ackscope.object_path import Place
from ackscope.tables import BASELINES, HOURS
from ackscope.tables.arrow import arrow_schema
from pipeline.analysis.bands import DAYS, SCOPES, Bands, bands
from pipeline.analysis.cluster import CLUSTER
from pipeline.analysis.column_packing import ObjectMatrix, analyse
from pipeline.analysis.noise import noise
from pipeline.analysis.series import FAMILIES, MeasureFamily
from pipeline.frames import read_rollups
from pipeline.hours import HOUR
from pipeline.schema import spark_schema

WEEKS = 8
# Maximum days that a band is computed from.
_SPAN_DAYS = WEEKS * 7

# Days after which an object that was not seen any more has no band.
_MAX_ABSENT_DAYS = 14

# Families with bands: objects that live long enough, and the cluster as a whole.
BANDED = (*(family for family in FAMILIES if family.banded), CLUSTER)

_MAX_ROWS = 4_000_000
_LOW_SUFFIX, _HIGH_SUFFIX = "_low", "_high"


def portions(manifest: Manifest, hours_of_day: Sequence[int]) -> Iterator[list[int]]:
    """Hours of the day that are computed together."""
    sources = {family.source.name for family in BANDED}
    rows = sum(it.rows for name in sources for it in manifest.files_for(HOURS[name].name))
    step = max(1, _MAX_ROWS * 24 // max(rows, 1))
    for start in range(0, len(hours_of_day), step):
        yield list(hours_of_day[start : start + step])


def build(spark: SparkSession, root: Place, manifest: Manifest, hours_of_day: Sequence[int], newest: int) -> DataFrame:
    """The bands of the hours of the week at these hours of the day: rows of `BASELINES`.

    Args:
        spark: the session.
        root: the rollup folder.
        manifest: its manifest.
        hours_of_day: 0 to 23.
        newest: the newest hour with rows, since 1970.
    """
    last = newest // 24
    first = last - _SPAN_DAYS + 1
    found = [spark.createDataFrame([], spark_schema(BASELINES))]
    for family in BANDED:
        table = HOURS[family.source.name]
        if manifest.files_for(table.name, first * 24, newest + 1):
            rows = read_rollups(spark, root, manifest, table, first * 24, newest + 1)
            frame = family.of_hours(rows.where(F.hour(table.time).isin(list(hours_of_day))))
            hour = F.floor(F.unix_seconds("at") / HOUR) - first * 24
            judge = partial(rows_of, family=family, first=first, hours_of_day=tuple(hours_of_day), newest=newest)
            found.append(analyse(frame, hour, _SPAN_DAYS * 24, BASELINES, judge))
    return reduce(DataFrame.unionByName, found[1:] or found)


def rows_of(
    objects: ObjectMatrix, family: MeasureFamily, first: int, hours_of_day: Sequence[int], newest: int
) -> pa.Table:
    """The bands of some objects, rows of `BASELINES`.

    Args:
        objects: their hours from the beginning of day `first` on.
        family: their family.
        first: days since 1970.
        hours_of_day: 0 to 23.
        newest: the newest hour with rows, since 1970.
    """
    days = np.arange(first, first + _SPAN_DAYS)
    tables = []
    for hour in hours_of_day:
        # The newest hour with this hour of day, of today or yesterday: the band always covers eight weeks.
        end = newest - (newest - hour) % 24 + 1
        for measure in family.measures:
            of_day = {
                name: objects.values[name][:, hour::24]
                for name in (measure, measure + _LOW_SUFFIX, measure + _HIGH_SUFFIX)
                if name in objects.values
            }
            for weekday in range(7):
                own = (days + 3) % 7 == weekday
                found = bands(
                    of_day[measure],
                    own,
                    noise(_name(objects, measure)),
                    of_day.get(measure + _LOW_SUFFIX),
                    of_day.get(measure + _HIGH_SUFFIX),
                )
                present = np.any(~np.isnan(of_day[measure][:, -_MAX_ABSENT_DAYS:]), axis=1)
                week_hour = hour_of_week((weekday - 3) % 7 * 86400.0 + hour * HOUR)
                tables.append(_table(objects, family.kind, measure, found, present, week_hour, end))
    return pa.concat_tables([arrow_schema(BASELINES).empty_table(), *tables])


def _name(objects: ObjectMatrix, measure: str) -> str:
    """The name of a measure with its prefix, for `noise`; all prefixes of one family have the same noise."""
    return (objects.columns["prefix"][0] if len(objects) else "") + measure


def _table(
    objects: ObjectMatrix, kind: str, measure: str, found: Bands, present: np.ndarray, week_hour: int, end: int
) -> pa.Table:
    index = np.flatnonzero(present & (found.values > 0))
    selected = {name: np.array(column, dtype=object)[index] for name, column in objects.columns.items()}
    scope = found.scope[index]
    reasons = [None if it else f"{days} of {DAYS} days" for it, days in zip(scope, found.values[index], strict=True)]
    numbers = (found.low[index], found.middle[index], found.high[index])
    columns = [
        pa.array(np.full(len(index), end * HOUR * 1_000_000), pa.timestamp("us", tz="UTC")),
        np.full(len(index), week_hour),
        pa.array([kind] * len(index), pa.string()),
        pa.array(selected["vhost"], pa.string()),
        pa.array(selected["name"], pa.string()),
        pa.array(selected["prefix"] + measure, pa.string()),
        pa.array([SCOPES[it] for it in scope], pa.string()),
        found.values[index],
        *(pa.array(it, pa.float64(), from_pandas=True) for it in numbers),
        pa.array(reasons, pa.string()),
    ]
    return pa.table(columns, schema=arrow_schema(BASELINES))
