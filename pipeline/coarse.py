"""Hours of minutes, and days of hours: made again where, and only where, what they are made of changed.

An hour remembers the digest of the rows that it was made of, and the catalog has the digest of the rows that are there
now: a kill at any moment only means that it is made later.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.tables import DAYS, HOURS, MINUTES, Table
from pipeline.frames import rolled_up
from pipeline.schema import arrow_schema
from pipeline.session import SPARK_ERRORS, cause
from pipeline.storage.rollups import Rollups
from pipeline.transforms.merging import merged

ROWS_AT_ONCE = 4_000_000
"""Rows that one Spark job reads; at least those of one hour, or day."""

_HELD = 1_000_000
"""Merged rows that wait to be committed together."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is made of what; `span` is how many hours a row of `target` tells of."""

    source: Table
    target: Table
    span: int


_HOURS = tuple(Step(table, HOURS[name], 1) for name, table in MINUTES.items())
_DAYS = tuple(Step(HOURS[name], DAYS[name], 24) for name in MINUTES)
STEPS = (*_HOURS, *_DAYS)
"""All, in their order."""


@dataclass(frozen=True, slots=True)
class Stale:
    """What of a table of hours or days is not as its source says now; by hour, or first hour of the day.

    Attributes:
        make: the digest of what is to be merged.
        lose: those whose source has no rows any more, though these were not dropped.
    """

    make: Mapping[int, str]
    lose: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Merged:
    step: Step
    found: Stale
    rows: pa.Table


def stale(manifest: Manifest, step: Step) -> Stale:
    """Compare what is there with what was merged; what was dropped because of its age is no difference."""
    parts, made = _parts(manifest, step.source), _made(manifest, step.target)
    make = {start: text for start, text in parts.items() if made.get(start) != text}
    return Stale(make, frozenset(made.keys() - parts.keys()))


def refresh(spark: SparkSession, rollups: Rollups, cluster: str, go_on: Callable[[], bool] = lambda: True) -> None:
    """Make the hours and days of a cluster what its minutes say now.

    It computes without keeping other writers out, and takes the rollups as the only writer to commit: what changed
    meanwhile is left for the next time. It ends early where `go_on` says no.

    Raises:
        DataError: Spark failed, or a file cannot be read or written.
    """
    for steps in (_HOURS, _DAYS):
        held: list[_Merged] = []
        for step in steps:
            try:
                for it in _merge(spark, rollups, cluster, step):
                    held.append(it)
                    if sum(it.rows.num_rows for it in held) > _HELD:
                        _commit(rollups, cluster, held)
                        held = []
                    if not go_on():
                        return
            except SPARK_ERRORS as error:
                if not go_on():
                    return
                raise DataError(f"{step.target.name} of cluster {cluster} could not be made: {cause(error)}") from None
        if held:
            _commit(rollups, cluster, held)


def _merge(spark: SparkSession, rollups: Rollups, cluster: str, step: Step) -> Iterator[_Merged]:
    manifest = rollups.manifest(cluster)
    found = stale(manifest, step)
    if found.lose:
        yield _Merged(step, Stale({}, found.lose), arrow_schema(step.target).empty_table())
    for starts in _portions(manifest, step, found.make):
        rows = rolled_up(spark, rollups.root, manifest, step.source, starts[0], starts[-1] + step.span)
        make = {start: found.make[start] for start in starts}
        yield _Merged(step, Stale(make, frozenset()), merged(rows, step.source, step.target).toArrow())


def _commit(rollups: Rollups, cluster: str, held: list[_Merged]) -> None:
    """Put in what still is of the rows that are there now."""
    with rollups.only_writer():
        change = rollups.change(cluster)
        for it in held:
            parts, made = _parts(change.manifest, it.step.source), _made(change.manifest, it.step.target)
            make = {start: text for start, text in it.found.make.items() if parts.get(start) == text}
            lose = {start for start in it.found.lose if start in made and start not in parts}
            hours = [start + hour for start in sorted(lose | make.keys()) for hour in range(it.step.span)]
            change.replace(it.step.target, hours, it.rows, make)
        change.commit()


def _portions(manifest: Manifest, step: Step, make: Mapping[int, str]) -> Iterator[list[int]]:
    """What is to be merged, in portions that lie together and are not too many rows."""
    rows = {int(start): it.rows // len(it.parts) for it in manifest.files_for(step.source.name) for start in it.parts}
    portion: list[int] = []
    total = 0
    for start in sorted(make):
        if portion and (start - portion[-1] > step.span or total + rows[start] > ROWS_AT_ONCE):
            yield portion
            portion, total = [], 0
        portion.append(start)
        total += rows[start]
    if portion:
        yield portion


def _parts(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.parts.items()}


def _made(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.made_of.items()}
