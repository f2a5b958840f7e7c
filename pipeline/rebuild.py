"""Rebuild the rollups of some hours from their landing rows: whole, and the same however often it is done.

Each commit is made as the only writer, of one look at landing. What that look finds and the rollups may not tell of is
made part of the same commit: so a file that lands meanwhile is seen with all of its rows, or with none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.tables import Table
from pipeline.arrivals import Arrivals
from pipeline.frames import bounds, frame, within
from pipeline.hours import runs
from pipeline.look import Files, Look
from pipeline.progress import Progress, Silent
from pipeline.schema import arrow_schema
from pipeline.session import SPARK_ERRORS, cause
from pipeline.stop import StoppedError
from pipeline.storage.change import Change
from pipeline.storage.footer import Contents
from pipeline.storage.landing import Landing, Touched
from pipeline.storage.rollups import Rollups
from pipeline.transforms import TRANSFORMS, Transform
from pipeline.windows import (
    Growth,
    Window,
    Work,
    chunks,
    hours_of,
    joined,
    narrowed,
    only,
    steps,
    together,
    whole,
    without,
)

Listing = Mapping[Table, Mapping[Path, Contents]]


class _ChangedError(Exception):
    """A landing file was set apart, or went, while it was read."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Landing files that are rolled up now.

    Attributes:
        given: those that were asked for, without those put together of others that are rolled up.
        beside: those that came meanwhile.
    """

    given: dict[Path, Contents] = field(default_factory=dict)
    beside: dict[Path, Contents] = field(default_factory=dict)


def rebuild(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    touched: Touched,
    arrivals: Arrivals | None = None,
    go_on: Callable[[], bool] = lambda: True,
    progress: Progress | None = None,
) -> int:
    """Make anew every rollup that depends on landing rows of the tables, clusters and hours `touched`.

    The result depends on the landing rows alone. All tables of a chunk of hours of one cluster change at once. Files
    that are not of `arrivals`, because they land meanwhile, are taken in whole by the chunk that first reads of them.

    Returns:
        How many files are new.

    Raises:
        DataError: Spark failed for a reason that lies in no landing file, or a file cannot be written.
        StoppedError: `go_on` said no.
    """
    written = 0
    for cluster in sorted({cluster for _, cluster in touched}):
        mine = {table: hours for (table, its), hours in touched.items() if its == cluster}
        work = {transform: {hour: whole(hour) for hour in _hours(mine, transform)} for transform in TRANSFORMS}
        job = _Rebuild(spark, landing, rollups, cluster, arrivals, go_on, progress or Silent())
        written += job.through(without(work, set()))
    return written


def take_in(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    paths: Iterable[Path],
    arrivals: Arrivals,
    go_on: Callable[[], bool] = lambda: True,
    *,
    alone: bool = False,
) -> Taken:
    """Make anew the minutes that depend on rows of these landing files, and of those that came since.

    All others must be in the rollups already: their minutes stay as they are. With `alone`, what came since waits for
    its turn, for there may be too much of it; minutes that are made anew then tell of it before others do.

    Raises:
        DataError, StoppedError: as of `rebuild`.
    """
    given: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        partition = landing.partition_of(path.parent)
        if partition is not None:
            given[partition.cluster].add(path)
    taken = Taken()
    for cluster, mine in sorted(given.items()):
        job = _Rebuild(spark, landing, rollups, cluster, arrivals, go_on, Silent(), alone=alone)
        job.through({}, mine)
        taken.given.update(job.taken.given)
        taken.beside.update(job.taken.beside)
    return taken


@dataclass(frozen=True, slots=True)
class _Plan:
    """One commit.

    Attributes:
        given, beside: what it takes in.
        work: what it makes anew, in these portions of hours.
        left: what is for the commits after it.
        listing: the files that it reads.
    """

    given: Files
    beside: Files
    work: Work
    portions: list[list[int]]
    left: Work
    listing: Listing


@dataclass(slots=True)
class _Rebuild:
    """Of one cluster."""

    spark: SparkSession
    landing: Landing
    rollups: Rollups
    cluster: str
    arrivals: Arrivals | None
    go_on: Callable[[], bool]
    progress: Progress
    alone: bool = False
    taken: Taken = field(default_factory=Taken)
    growth: dict[Transform, Growth] = field(default_factory=dict)

    def through(self, work: Work, paths: Iterable[Path] = ()) -> int:
        """Do this work, and take in these files, in as many commits as it takes; how many files are new."""
        written, left, given = 0, work, set(paths)
        self.progress.expect(len(hours_of(work)))
        while left or given:
            with self.rollups.only_writer():
                plan, change = self._staged(left, given)
                written += _new(change.manifest, change.commit())
            self._note(plan)
            before, after = hours_of(left), hours_of(plan.left)
            self.progress.expect(len(after - before))
            self.progress.done(len(before - after))
            left, given = plan.left, set()
        return written

    def _note(self, plan: _Plan) -> None:
        given, beside = ({path: held for path, (_, held) in files.items()} for files in (plan.given, plan.beside))
        self.taken.given.update(given)
        self.taken.beside.update(beside)
        if self.arrivals is not None:
            self.arrivals.take(given | beside)

    def _staged(self, left: Work, given: set[Path]) -> tuple[_Plan, Change]:
        """The next commit; planned anew where a landing file proves bad on the way."""
        while True:
            change, floor = self.rollups.change(self.cluster), self.landing.floor(self.cluster)
            look = Look(self.landing, self.cluster)
            plan = self._plan(look, left, given)
            try:
                for portion in plan.portions:
                    for transform, wanted in plan.work.items():
                        windows = _whole_where_new(change.manifest, transform.rollup, wanted)
                        # What expired since it was touched would be replaced by nothing.
                        for run in runs(hour for hour in portion if hour in windows and hour >= floor):
                            self._amend(change, look, plan.listing, transform, {hour: windows[hour] for hour in run})
            except _ChangedError:
                continue
            return plan, change

    def _amend(
        self, change: Change, look: Look, listing: Listing, transform: Transform, windows: Mapping[int, Window]
    ) -> None:
        """Make anew these minutes of hours without a gap between them."""
        growth = self.growth.setdefault(transform, Growth(transform.most))
        hours = sorted(windows)
        each = look.rows_of(transform, together(windows, hours)) / len(hours)
        for step in steps(hours, each, growth):
            window = together(windows, step)
            rows = self._compute(listing, transform, window)
            growth.measured(each * len(step), rows.num_rows)
            change.amend(transform.rollup, *window, rows)

    def _plan(self, look: Look, left: Work, paths: set[Path]) -> _Plan:
        given, beside = self._given(look, paths), Files()
        while True:
            arrived = _work_of(look, self._not_taken(given) | beside)
            pieces = list(chunks(arrived, look.rows_of))
            first = pieces[0] if pieces else []
            # With what arrived, always some of the rest: it must come to its end while files keep arriving.
            rest = [] if len(pieces) > 1 else next(chunks(left, look.rows_of), [])
            theirs, mine = ({hour for portion in portions for hour in portion} for portions in (first, rest))
            first = [portion for hours in first if (portion := [hour for hour in hours if hour not in mine])]
            work = joined(only(left, mine), only(arrived, theirs | mine))
            later = joined(without(left, mine), without(arrived, theirs | mine))
            tables = {table for transform in work for table in transform.sources}
            listing = {table: look.around(table, theirs | mine) for table in tables}
            # Looking may have opened folders in which something arrived, too.
            found = self._arrived(look, given)
            if found.keys() == beside.keys():
                return _Plan(given, beside, work, [*first, *rest], later, listing)
            beside = found

    def _given(self, look: Look, paths: set[Path]) -> Files:
        """Those of these files that count and may hold new rows."""
        found: Files = {}
        for path in paths:
            partition = self.landing.partition_of(path.parent)
            held = None if partition is None else look.files(partition.table, partition.day).get(path)
            if partition is None or held is None:
                continue
            if self.arrivals is not None and self.landing.compacted(path) and self.arrivals.old(held):
                continue
            found[path] = partition.table, held
        return found

    def _not_taken(self, given: Files) -> Files:
        """Without those that an earlier commit found beside its own."""
        known = self.arrivals
        return given if known is None else {path: it for path, it in given.items() if not known.took(path)}

    def _arrived(self, look: Look, given: Files) -> Files:
        if self.arrivals is None or self.alone:
            return {}
        return {path: it for path, it in self.arrivals.new(look.seen).items() if path not in given}

    def _compute(self, listing: Listing, transform: Transform, window: Window) -> pa.Table:
        """The rollup rows of these minutes; damaged files are set apart on the way."""
        if not self.go_on():
            raise StoppedError
        start, end = window
        low, high = start - transform.memory, end + transform.memory
        first, last = low * 1_000_000, high * 1_000_000
        paths = {
            table: [path for path, held in listing[table].items() if held.first < last and first <= held.last]
            for table in transform.sources
        }
        if not paths[transform.source]:
            return arrow_schema(transform.rollup).empty_table()
        try:
            near = bounds(self.spark, low=low, high=high)
            frames = [within(frame(self.spark, table, paths[table]), table.time, near) for table in transform.sources]
            wanted = [bounds(self.spark, start=start, end=end)] if transform.memory else []
            return transform.build(*frames, *wanted).toArrow()
        except SPARK_ERRORS as error:
            if not self.go_on():
                raise StoppedError from None
            if sum(self.landing.doubt(table, paths[table]) for table in transform.sources):
                raise _ChangedError from None
            raise DataError(
                f"{transform.rollup.name} of cluster {self.cluster} could not be computed from "
                f"{self.landing.root / transform.source.name}: {cause(error)}"
            ) from None


def _work_of(look: Look, files: Files) -> Work:
    """Where the rows of these files matter, if all others are in the rollups."""
    touched: dict[Table, set[int]] = defaultdict(set)
    near: dict[Table, set[int]] = defaultdict(set)
    spans: dict[Table, list[tuple[int, int]]] = defaultdict(list)
    for table, held in files.values():
        touched[table] |= held.hours
        near[table] |= held.near
        spans[table].append((held.first, held.last))
    work: Work = {}
    for transform in TRANSFORMS:
        hours = _hours(touched, transform)
        if transform.memory:
            # One without landing rows keeps the rollup that it may have.
            beside = _hours(near, transform) - hours
            hours |= {hour for hour in beside if look.rows(transform.source, whole(hour))}
        mine = [span for table in transform.sources for span in spans[table]]
        windows = narrowed(hours, mine, transform.memory)
        if windows:
            work[transform] = windows
    return work


def _hours(touched: Mapping[Table, set[int]], transform: Transform) -> set[int]:
    return set[int]().union(*(touched.get(table, set()) for table in transform.sources))


def _whole_where_new(manifest: Manifest, table: Table, windows: Mapping[int, Window]) -> Mapping[int, Window]:
    """An hour of which nothing is there has no other minutes that could stay."""
    known = {start for it in manifest.files_for(table.name) for start in it.parts}
    return {hour: window if str(hour) in known else whole(hour) for hour, window in windows.items()}


def _new(before: Manifest, after: Manifest) -> int:
    """Files that count now and did not."""
    known = {it.path for files in before.tables.values() for it in files}
    return sum(it.path not in known for files in after.tables.values() for it in files)
