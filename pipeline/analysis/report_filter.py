"""Which of the shifts that were found are told as changes."""

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

_REVERSAL_MINUTES = 12 * 60
"""Minutes after a shift in which its end is told, too."""

_PLACE_TOLERANCE = 2
"""Minutes by which the place of a shift may be off."""

_SAME_MINUTES = 3
"""Minutes within which shifts of two measures of one object are one: what is delivered is what is acked."""

_DUPLICATE_MINUTES = 15
"""Minutes within which the quick look and the patient one tell the same shift."""

_BACKLOG_MEASURES = {"ready", "unacked", "unconfirmed"}

_PORT = re.compile(r":\d+(?= -> )| \(\d+\)$")
"""What is new in the name of a channel with every connection: `10.0.0.80:30349 -> 10.0.0.1:5672 (1)`."""

Series = tuple[str, str, str, str]
"""(kind, vhost, name, measure)."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of candidates; `at` in minutes since 1970, `size` negative where it fell."""

    at: Minutes
    before: Values
    after: Values
    size: Values
    sure: Flags
    back: Flags
    fast: Flags


@dataclass(frozen=True, slots=True)
class _SeriesCandidates:
    """The candidates of one series, all rows in the order of time.

    Attributes:
        lasting: what the patient look found.
        soon: what the quick one found.
        kin: rows of all series that go by the same clock, its own among them; in no order.
        backlog: it is of what waits.
    """

    shifts: _Columns
    lasting: Minutes
    fast: Minutes
    siblings: Minutes
    backlog: bool


def select_reportable(candidates: pa.Table) -> pa.Table:
    """Rows of `CHANGES`: of `CANDIDATES`, those that are sure, and news.

    What goes back to where it was is told where the shift away from there was, but for a backlog: that it was worked
    off follows from what ended it. What is delivered is told only where it is not what is acked; that a channel is at
    its ceiling, or no more, only beside what else moved of it: every busy hour fills a prefetch that is small.
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
    """What of a name stays when the client connects anew: of a channel the hosts, of a consumer the queue."""
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
    """Those of one series that are told: what lasts, and of the rest what stands out very far."""
    lasting = _select_lasting(one)
    return [*lasting, *_transient(one, lasting)]


def _novel(one: _SeriesCandidates, index: Minutes) -> list[int]:
    """Those that are sure, and news among the shifts that the same look found."""
    at, size = one.shifts.at, one.shifts.size
    siblings = one.siblings[one.shifts.fast[one.siblings] == one.shifts.fast[index[0]]] if len(index) else one.siblings
    return [
        int(it) for it in index[is_novel(at[index], size[index], at[siblings], size[siblings]) & one.shifts.sure[index]]
    ]


def _transient(one: _SeriesCandidates, lasting: Sequence[int]) -> list[int]:
    """What the quick look tells: nothing that goes home, nor what is told as lasting anyway."""
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
    """Whether a shift goes back to where one in the hours before came from."""
    shifts, size = one.shifts, one.shifts.size[row]
    return any(
        0 < shifts.at[row] - shifts.at[it] <= _REVERSAL_MINUTES
        and shifts.size[it] * size < 0
        and abs(shifts.after[row] - shifts.before[it]) <= abs(size) / 2
        for it in (*one.lasting, *one.fast)
    )


def _select_lasting(one: _SeriesCandidates) -> list[int]:
    """What the patient look tells, in the order of time."""
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
    """Whether a shift the other way, of half its size or more, is between so many minutes after it; negative: before.

    What lasted too short is undone soon after; and what undoes one that was not told goes back to what is usual.
    """
    shifts, index = one.shifts, one.lasting
    apart = shifts.at[index] - shifts.at[row]
    other = shifts.size[index] * np.sign(shifts.size[row]) <= -0.5 * abs(shifts.size[row])
    return bool(np.any((start <= apart) & (apart < end) & (apart != 0) & other))
