"""Select the detected shifts that are reported as changes."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ackscope.tables import CHANGES
from ackscope.tables.arrow import arrow_schema
from pipeline.analysis.noise import Values
from pipeline.analysis.novelty import Flags, Minutes, is_novel
from pipeline.analysis.shifts import LASTING_MINUTES

# A reversal within this time after a shift is reported, too.
_REVERSAL_MINUTES = 12 * 60

# Minutes by which the time of a shift may be off.
_PLACE_TOLERANCE = 2

# Shifts of two measures of one object within this time are one: deliveries equal acks.
_SAME_MINUTES = 3

# Within this time, the fast and the slow detector found the same shift.
_DUPLICATE_MINUTES = 15

_BACKLOG_MEASURES = {"ready", "unacked", "unconfirmed"}

# The part of a channel name that changes with every connection: `10.0.0.80:30349 -> 10.0.0.1:5672 (1)`.
_PORT = re.compile(r":\d+(?= -> )| \(\d+\)$")

# (kind, vhost, name, measure).
Series = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of candidates; `at` in minutes since 1970, `size` negative for a fall."""

    at: Minutes
    before: Values
    after: Values
    size: Values
    sure: Flags
    back: Flags
    fast: Flags


@dataclass(frozen=True, slots=True)
class _SeriesCandidates:
    """The candidates of one series, as row numbers in order of time.

    Attributes:
        lasting: found by the slow detector.
        fast: found by the fast detector.
        siblings: rows of all series with the same `_stable_name` and measure, including its own, unsorted.
        backlog: the measure is a backlog.
    """

    shifts: _Columns
    lasting: Minutes
    fast: Minutes
    siblings: Minutes
    backlog: bool


def select_reportable(candidates: pa.Table) -> pa.Table:
    """Return rows of `CHANGES`: the `CANDIDATES` that are sure and novel.

    Report a reversal only if the original shift was reported; never report a backlog draining. Report deliveries only
    if they differ from acks; report a prefetch ceiling only together with another change of the object, because every
    busy hour fills a small prefetch.
    """
    series: dict[Series, list[int]] = defaultdict(list)
    siblings: dict[Series, list[int]] = defaultdict(list)
    before, after = (candidates[name].to_numpy() for name in ("before", "after"))
    shifts = _Columns(
        candidates["at"].cast(pa.int64()).to_numpy() // 60_000_000,
        before,
        after,
        after - before,
        *(candidates[name].to_numpy(zero_copy_only=False).astype(np.bool_) for name in ("sure", "back", "soon")),
    )
    columns = [candidates[name].to_pylist() for name in ("kind", "vhost", "name", "measure")]
    for row, (kind, vhost, name, measure) in enumerate(zip(*columns, strict=True)):
        series[kind, vhost, name, measure].append(row)
        siblings[kind, vhost, _stable_name(kind, name), measure].append(row)
    reportable = {
        (kind, vhost, name, measure): _of_series(
            _series_candidates(
                shifts,
                rows,
                siblings[kind, vhost, _stable_name(kind, name), measure],
                backlog=measure in _BACKLOG_MEASURES,
            )
        )
        for (kind, vhost, name, measure), rows in series.items()
    }
    companions: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for (kind, vhost, name, measure), rows in reportable.items():
        if measure == "delivered":
            acked = reportable.get((kind, vhost, name, "acked"), [])
            rows[:] = [row for row in rows if not _coincides(row, acked, shifts)]
        if measure != "at_ceiling":
            companions[kind, vhost, name] += rows
    for (kind, vhost, name, measure), rows in reportable.items():
        if measure == "at_ceiling":
            rows[:] = [row for row in rows if _coincides(row, companions[kind, vhost, name], shifts)]
    rows = sorted(row for rows in reportable.values() for row in rows)
    return candidates.take(pa.array(rows, pa.int64())).select(list(CHANGES.names)).cast(arrow_schema(CHANGES))


def _stable_name(kind: str, name: str) -> str:
    """The part of a name that survives a reconnect: the hosts of a channel, the queue of a consumer."""
    if kind == "channel":
        return _PORT.sub("", name)
    return name.rpartition("/")[0] if kind == "consumer" else name


def _coincides(row: int, others: Sequence[int], shifts: _Columns) -> bool:
    return any(abs(shifts.at[row] - shifts.at[it]) <= _SAME_MINUTES for it in others)


def _series_candidates(
    shifts: _Columns, rows: Sequence[int], siblings: Sequence[int], *, backlog: bool
) -> _SeriesCandidates:
    index = np.array(sorted(rows, key=lambda row: shifts.at[row]), dtype=np.int64)
    fast = shifts.fast[index]
    return _SeriesCandidates(shifts, index[~fast], index[fast], np.array(siblings, dtype=np.int64), backlog)


def _of_series(one: _SeriesCandidates) -> list[int]:
    """The reportable shifts of one series: those that last, and those that stand out very far."""
    lasting = _select_lasting(one)
    return [*lasting, *_transient(one, lasting)]


def _novel(one: _SeriesCandidates, index: Minutes) -> list[int]:
    """The shifts in `index` that are sure, and novel among the shifts of the same detector."""
    at, size = one.shifts.at, one.shifts.size
    siblings = one.siblings[one.shifts.fast[one.siblings] == one.shifts.fast[index[0]]] if len(index) else one.siblings
    return [
        int(it) for it in index[is_novel(at[index], size[index], at[siblings], size[siblings]) & one.shifts.sure[index]]
    ]


def _transient(one: _SeriesCandidates, lasting: Sequence[int]) -> list[int]:
    """Shifts of the fast detector that do not revert an earlier one and are not reported as lasting."""
    at = one.shifts.at
    return [
        row
        for row in _novel(one, one.fast)
        if not (
            one.shifts.back[row]
            or _reverts(row, one)
            or any(abs(at[row] - at[it]) <= _DUPLICATE_MINUTES for it in lasting)
        )
    ]


def _reverts(row: int, one: _SeriesCandidates) -> bool:
    """Whether a shift returns to the level before an earlier shift of the last hours."""
    shifts, size = one.shifts, one.shifts.size[row]
    return any(
        0 < shifts.at[row] - shifts.at[it] <= _REVERSAL_MINUTES
        and shifts.size[it] * size < 0
        and abs(shifts.after[row] - shifts.before[it]) <= abs(size) / 2
        for it in (*one.lasting, *one.fast)
    )


def _select_lasting(one: _SeriesCandidates) -> list[int]:
    """Reportable shifts of the slow detector, in order of time."""
    shifts, selected = one.shifts, list[int]()
    for row in _novel(one, one.lasting):
        size = shifts.size[row]
        if (one.backlog and size < 0) or _reverted(row, one, 0, LASTING_MINUTES - _PLACE_TOLERANCE):
            continue
        begun = any(
            shifts.at[row] - shifts.at[it] <= _REVERSAL_MINUTES and shifts.size[it] * size < 0 for it in selected
        )
        if begun or not (shifts.back[row] or _reverted(row, one, -_REVERSAL_MINUTES, 0)):
            selected.append(row)
    return selected


def _reverted(row: int, one: _SeriesCandidates, start: int, end: int) -> bool:
    """Whether an opposite shift of at least half its size lies between `start` and `end` minutes after it."""
    shifts, index = one.shifts, one.lasting
    apart = shifts.at[index] - shifts.at[row]
    other = shifts.size[index] * np.sign(shifts.size[row]) <= -0.5 * abs(shifts.size[row])
    return bool(np.any((start <= apart) & (apart < end) & (apart != 0) & other))
