"""Rank what changed around a moment by how likely it is the cause. Pure arithmetic.

Input are rows of `changes` and `episodes`. The pipeline and the dashboard both use it, so that they agree. The rules:

1. Changes within `WAVE_GAP_SECONDS` of the previous one form a wave. The wave with the most and largest changes comes
   first; a wave close to the moment counts more than a distant one.
2. Within a wave, objects are ordered by their first change: a cause changes before its effects.
3. Change points are accurate to about `SIMULTANEOUS_SECONDS`. Among objects that changed at the same time, a stopped
   node or an alarm comes first, then what many queues share (nodes, probes), then a queue before its channels and
   consumers, then the larger change.
4. Changes of a queue's channels and consumers are listed under the queue if the queue changed in the same wave.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ackscope.clock import stamp
from ackscope.measures import measure, quantity

# Seconds without any change that separate two waves.
WAVE_GAP_SECONDS = 900.0

# Seconds within which the order of two changes is unknown.
SIMULTANEOUS_SECONDS = 120.0

# This many queues that change together have a common cause.
MANY_QUEUES = 5

_SHARED_KINDS = ("node", "probe", "cluster")
_PART_KINDS = ("channel", "consumer", "connection")
_DECISIVE_MEASURES = ("down", "mem_alarm", "disk_alarm", "partitions")
_SEVERITY_WEIGHT = {"critical": 30.0, "warning": 10.0, "info": 2.0}
_MAX_SCORE = 1000.0

# (kind, vhost, name).
ObjectKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level shift of one measure of one object: one row of `changes`.

    Attributes:
        at: seconds since 1970.
        queue: for a channel or consumer, the queue it consumes from; None if unknown, and for other kinds.
    """

    at: float
    kind: str
    vhost: str
    name: str
    measure: str
    before: float
    after: float
    score: float
    minutes: int
    queue: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ChangePoint":
        """Build it from a row of the table, by its column names."""
        return cls(**{**row, "at": stamp(row["at"])})

    @property
    def subject(self) -> ObjectKey:
        """The object that changed."""
        return (self.kind, self.vhost, self.name)

    @property
    def parent(self) -> ObjectKey:
        """The queue that this channel or consumer belongs to, or the object itself."""
        return self.subject if self.queue is None else ("queue", self.vhost, self.queue)


@dataclass(frozen=True, slots=True)
class FindingEpisode:
    """One finding from its beginning to its end: one row of `episodes`. Times are in seconds since 1970.

    Attributes:
        found: it was already active when the exporter started, so it began at `began` or earlier.
        lasts: it was active when it was last reported. If False and `ended` is None, it ended at an unknown time.
    """

    began: float
    ended: float | None
    rule: str
    severity: str
    kind: str
    vhost: str
    name: str
    summary: str = ""
    found: bool = False
    lasts: bool = True

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FindingEpisode":
        """Build it from a row of the table, by its column names; rows without `lasts` count as lasting."""
        return cls(
            began=stamp(row["began"]),
            ended=None if row["ended"] is None else stamp(row["ended"]),
            rule=row["rule"],
            severity=row["severity"],
            kind=row["kind"],
            vhost=row["vhost"],
            name=row["name"],
            summary=row["summary"] or "",
            found=bool(row["found"]),
            lasts=row.get("lasts") is not False,
        )

    @property
    def subject(self) -> ObjectKey:
        """The object that the finding is about."""
        return (self.kind, self.vhost, self.name)


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """An object that changed, with all its changes in one wave.

    Attributes:
        at: seconds since 1970 of its first change, or that of the first of its parts.
        wave: rank of its wave; 0 is the most important one.
        strength: 0 and up; grows with the logarithm of the largest change.
        shifts, findings: earliest first.
        parts: changes of its channels and consumers, earliest first.
    """

    kind: str
    vhost: str
    name: str
    at: float
    wave: int
    strength: float
    shifts: tuple[ChangePoint, ...]
    findings: tuple[FindingEpisode, ...]
    parts: tuple[ChangePoint, ...] = ()

    def first_findings(self) -> tuple[tuple[FindingEpisode, int], ...]:
        """The first finding of each rule and severity, with the number of its episodes."""
        firsts: dict[tuple[str, str], tuple[FindingEpisode, int]] = {}
        for one in self.findings:
            first, times = firsts.get((one.rule, one.severity), (one, 0))
            firsts[one.rule, one.severity] = (first, times + 1)
        return tuple(firsts.values())


def repeat_suffix(times: int) -> str:
    """The suffix `, 3 times`, or nothing for a single time."""
    return f", {times} times" if times > 1 else ""


def rank_changes(
    shifts: Iterable[ChangePoint], episodes: Iterable[FindingEpisode], moment: float, around: float = 3600.0
) -> tuple[ChangedObject, ...]:
    """The objects that changed within `around` seconds of a moment, the likeliest cause first."""
    moves: list[ChangePoint | FindingEpisode] = [it for it in shifts if abs(it.at - moment) <= around]
    # A finding that was active at the exporter's start began at an unknown time.
    moves += [it for it in episodes if abs(it.began - moment) <= around and not it.found]
    waves = [_group_by_object(wave) for wave in _waves(moves)]
    waves.sort(key=lambda wave: -_wave_weight(wave, moment, around))
    return tuple(_changed_object(key, number, mine) for number, wave in enumerate(waves) for key, mine in _order(wave))


def describe_parts(it: ChangedObject, most: int = 2) -> list[tuple[float, str]]:
    """Changes of its first `most` channels and consumers, each with its first time; then how many more changed."""
    parts: dict[ObjectKey, list[ChangePoint]] = {}
    for shift in it.parts:
        parts.setdefault(shift.subject, []).append(shift)
    lines = [
        (shifts[0].at, f"its {display_name(kind, '', name)}: {', '.join(map(describe_change, shifts))}")
        for (kind, _, name), shifts in list(parts.items())[:most]
    ]
    if more := list(parts.values())[most:]:
        lines.append((more[0][0].at, f"and {len(more)} more of its channels and consumers"))
    return lines


def display_name(kind: str, vhost: str, name: str) -> str:
    """An object in words: `queue 'orders' in vhost '/'`."""
    return f"{kind} {name!r} in vhost {vhost!r}" if vhost else f"{kind} {name!r}"


def describe_change(shift: ChangePoint) -> str:
    """A change with its levels before and after: `publish rate fell from 120/s to 0/s`."""
    what = measure(shift.measure)
    direction = "rose" if shift.after > shift.before else "fell"
    # The words "messages ready" already contain their unit.
    unit = "" if what.unit == "messages" else what.unit
    return f"{what.words} {direction} from {quantity(shift.before, unit)} to {quantity(shift.after, unit)}"


def _time_of(move: ChangePoint | FindingEpisode) -> float:
    return move.at if isinstance(move, ChangePoint) else move.began


def _first_time(moves: Sequence[ChangePoint | FindingEpisode]) -> float:
    return min(_time_of(move) for move in moves)


def _waves(moves: list[ChangePoint | FindingEpisode]) -> list[list[ChangePoint | FindingEpisode]]:
    waves: list[list[ChangePoint | FindingEpisode]] = []
    for move in sorted(moves, key=_time_of):
        if waves and _time_of(move) - _time_of(waves[-1][-1]) <= WAVE_GAP_SECONDS:
            waves[-1].append(move)
        else:
            waves.append([move])
    return waves


_MovesByObject = dict[ObjectKey, list[ChangePoint | FindingEpisode]]


def _group_by_object(wave: Sequence[ChangePoint | FindingEpisode]) -> _MovesByObject:
    moved = {move.subject for move in wave}
    objects: _MovesByObject = {}
    for move in wave:
        parent = move.parent if isinstance(move, ChangePoint) else move.subject
        objects.setdefault(parent if parent in moved else move.subject, []).append(move)
    return objects


def _strength(moves: Sequence[ChangePoint | FindingEpisode]) -> float:
    sizes = (
        abs(move.score) if isinstance(move, ChangePoint) else _SEVERITY_WEIGHT.get(move.severity, 1.0) for move in moves
    )
    return math.log2(1 + min(_MAX_SCORE, max((size for size in sizes if not math.isnan(size)), default=0.0)))


def _changed_object(key: ObjectKey, wave: int, moves: Sequence[ChangePoint | FindingEpisode]) -> ChangedObject:
    return ChangedObject(
        *key,
        at=_first_time(moves),
        wave=wave,
        strength=_strength(moves),
        shifts=tuple(move for move in moves if isinstance(move, ChangePoint) and move.subject == key),
        findings=tuple(move for move in moves if isinstance(move, FindingEpisode)),
        parts=tuple(move for move in moves if isinstance(move, ChangePoint) and move.subject != key),
    )


def _wave_weight(wave: _MovesByObject, moment: float, around: float) -> float:
    """The weight of a wave: the total strength of its changes, halved at `around` seconds from the moment."""
    distance = min(abs(_time_of(move) - moment) for moves in wave.values() for move in moves)
    near = 1 - 0.5 * min(1.0, distance / around) if around > 0 else 1.0
    return near * sum(_strength(moves) for moves in wave.values())


def _order(wave: _MovesByObject) -> list[tuple[ObjectKey, list[ChangePoint | FindingEpisode]]]:
    """Objects by their first change; those that changed at the same time by kind and size."""
    groups: list[list[tuple[ObjectKey, list[ChangePoint | FindingEpisode]]]] = []
    for item in sorted(wave.items(), key=lambda item: (_first_time(item[1]), item[0])):
        if groups and _first_time(item[1]) - _first_time(groups[-1][0][1]) <= SIMULTANEOUS_SECONDS:
            groups[-1].append(item)
        else:
            groups.append([item])
    found = []
    for group in groups:
        queues = sum(key[0] == "queue" for key, _ in group)
        found += sorted(group, key=partial(_sort_key, many=queues >= MANY_QUEUES))
    return found


def _sort_key(
    item: tuple[ObjectKey, list[ChangePoint | FindingEpisode]], *, many: bool
) -> tuple[bool, bool, bool, float, ObjectKey]:
    key, moves = item
    decisive = any(isinstance(move, ChangePoint) and move.measure in _DECISIVE_MEASURES for move in moves)
    broad = many and key[0] in _SHARED_KINDS
    return (not decisive, not broad, key[0] in _PART_KINDS, -_strength(moves), key)
