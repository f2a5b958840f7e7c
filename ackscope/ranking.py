"""What changed around a moment, who moved first: pure arithmetic over the rows of `changes` and `episodes`.

The pipeline's answer and the page both rank with this, so that they say the same. The rule, in words:

1. What moved within `APART` of the one before belongs to one wave; the wave in which most moved by most comes first,
   one near the moment before one far from it.
2. Within a wave, who moved first comes first: a cause moves before what follows from it.
3. Change points are known to about `TOGETHER`; among those who moved together, a node that stopped or an alarm comes
   before all, what many queues share (nodes, probes) before each of them, a queue before its channels and consumers;
   then the larger shift.
4. What moved of a queue's channels and consumers is told with the queue, where that moved in the same wave.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ackscope.clock import stamp
from ackscope.measures import measure, quantity

APART = 900.0
"""Seconds without any move that part two waves."""

TOGETHER = 120.0
"""Seconds within which nobody can say who moved first."""

MANY = 5
"""So many queues that move together have a cause in common."""

_BROAD = ("node", "probe", "cluster")
_PARTS = ("channel", "consumer", "connection")
_DECISIVE = ("down", "mem_alarm", "disk_alarm", "partitions")
_SURE = {"critical": 30.0, "warning": 10.0, "info": 2.0}
_ENOUGH = 1000.0

Subject = tuple[str, str, str]
"""(kind, vhost, name)."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One row of `changes`; `at` in seconds since 1970.

    Attributes:
        queue: of a channel or consumer the queue that it takes from; None where it is not known, or of other kinds.
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
    def of(cls, row: Mapping[str, Any]) -> "Shift":
        """A row of the table, by its column names."""
        return cls(**{**row, "at": stamp(row["at"])})

    @property
    def subject(self) -> Subject:
        """The object that moved."""
        return (self.kind, self.vhost, self.name)

    @property
    def whole(self) -> Subject:
        """The object that this one is a part of, or itself."""
        return self.subject if self.queue is None else ("queue", self.vhost, self.queue)


@dataclass(frozen=True, slots=True)
class Told:
    """One row of `episodes`; moments in seconds since 1970.

    Attributes:
        found: it was there at the exporter's first look: it began at `began` or before.
        lasts: it was there when the history was last told of it; False with `ended` None: it ended, nobody knows when.
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
    def of(cls, row: Mapping[str, Any]) -> "Told":
        """A row of the table, by its column names; one of before `lasts` was told tells nothing of it."""
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
    def subject(self) -> Subject:
        """The object that it is about."""
        return (self.kind, self.vhost, self.name)


@dataclass(frozen=True, slots=True)
class Moved:
    """One object that moved, and all that moved of it in this wave.

    Attributes:
        at: its first move, or the first of its parts.
        wave: 0 is the one that matters most.
        strength: 0 and up; grows with the logarithm of the largest shift.
        shifts, findings: earliest first.
        parts: shifts of its channels and consumers, earliest first.
    """

    kind: str
    vhost: str
    name: str
    at: float
    wave: int
    strength: float
    shifts: tuple[Shift, ...]
    findings: tuple[Told, ...]
    parts: tuple[Shift, ...] = ()

    def told(self) -> tuple[tuple[Told, int], ...]:
        """The first finding of each rule and severity, and how often it was told: one may come and go all the hour."""
        firsts: dict[tuple[str, str], tuple[Told, int]] = {}
        for one in self.findings:
            first, times = firsts.get((one.rule, one.severity), (one, 0))
            firsts[one.rule, one.severity] = (first, times + 1)
        return tuple(firsts.values())


def often(times: int) -> str:
    """Words behind what was told: nothing where it was told once."""
    return f", {times} times" if times > 1 else ""


def ranked(shifts: Iterable[Shift], told: Iterable[Told], moment: float, around: float = 3600.0) -> tuple[Moved, ...]:
    """The objects that moved within `around` seconds of a moment, the likeliest cause first."""
    moves: list[Shift | Told] = [it for it in shifts if abs(it.at - moment) <= around]
    # A finding that was there at the exporter's first look moved at no moment that is known.
    moves += [it for it in told if abs(it.began - moment) <= around and not it.found]
    waves = [_objects(wave) for wave in _waves(moves)]
    waves.sort(key=lambda wave: -_weight(wave, moment, around))
    return tuple(_moved(key, number, mine) for number, wave in enumerate(waves) for key, mine in _in_order(wave))


def parts_told(it: Moved, most: int = 2) -> list[tuple[float, str]]:
    """What moved of its channels and consumers, with the first moment: so many of them, and how many more."""
    parts: dict[Subject, list[Shift]] = {}
    for shift in it.parts:
        parts.setdefault(shift.subject, []).append(shift)
    told = [
        (shifts[0].at, f"its {name_of(kind, '', name)}: {', '.join(map(verb, shifts))}")
        for (kind, _, name), shifts in list(parts.items())[:most]
    ]
    if more := list(parts.values())[most:]:
        told.append((more[0][0].at, f"and {len(more)} more of its channels and consumers"))
    return told


def name_of(kind: str, vhost: str, name: str) -> str:
    """An object as a person would name it."""
    return f"{kind} {name!r} in vhost {vhost!r}" if vhost else f"{kind} {name!r}"


def verb(shift: Shift) -> str:
    """What a measure did, with before and after: `publish rate fell from 120/s to 0/s`."""
    what = measure(shift.measure)
    way = "rose" if shift.after > shift.before else "fell"
    # "messages ready" have their unit in their words.
    unit = "" if what.unit == "messages" else what.unit
    return f"{what.words} {way} from {quantity(shift.before, unit)} to {quantity(shift.after, unit)}"


def _when(move: Shift | Told) -> float:
    return move.at if isinstance(move, Shift) else move.began


def _first(moves: Sequence[Shift | Told]) -> float:
    return min(_when(move) for move in moves)


def _waves(moves: list[Shift | Told]) -> list[list[Shift | Told]]:
    waves: list[list[Shift | Told]] = []
    for move in sorted(moves, key=_when):
        if waves and _when(move) - _when(waves[-1][-1]) <= APART:
            waves[-1].append(move)
        else:
            waves.append([move])
    return waves


_Objects = dict[Subject, list[Shift | Told]]


def _objects(wave: Sequence[Shift | Told]) -> _Objects:
    moved = {move.subject for move in wave}
    objects: _Objects = {}
    for move in wave:
        whole = move.whole if isinstance(move, Shift) else move.subject
        objects.setdefault(whole if whole in moved else move.subject, []).append(move)
    return objects


def _strength(moves: Sequence[Shift | Told]) -> float:
    sizes = (abs(move.score) if isinstance(move, Shift) else _SURE.get(move.severity, 1.0) for move in moves)
    return math.log2(1 + min(_ENOUGH, max((size for size in sizes if not math.isnan(size)), default=0.0)))


def _moved(key: Subject, wave: int, moves: Sequence[Shift | Told]) -> Moved:
    return Moved(
        *key,
        at=_first(moves),
        wave=wave,
        strength=_strength(moves),
        shifts=tuple(move for move in moves if isinstance(move, Shift) and move.subject == key),
        findings=tuple(move for move in moves if isinstance(move, Told)),
        parts=tuple(move for move in moves if isinstance(move, Shift) and move.subject != key),
    )


def _weight(wave: _Objects, moment: float, around: float) -> float:
    """How much a wave matters; what lies at the end of the span counts half."""
    distance = min(abs(_when(move) - moment) for moves in wave.values() for move in moves)
    near = 1 - 0.5 * min(1.0, distance / around) if around > 0 else 1.0
    return near * sum(_strength(moves) for moves in wave.values())


def _in_order(wave: _Objects) -> list[tuple[Subject, list[Shift | Told]]]:
    """Who moved first comes first; those who moved together by what they are, and by how much."""
    groups: list[list[tuple[Subject, list[Shift | Told]]]] = []
    for item in sorted(wave.items(), key=lambda item: (_first(item[1]), item[0])):
        if groups and _first(item[1]) - _first(groups[-1][0][1]) <= TOGETHER:
            groups[-1].append(item)
        else:
            groups.append([item])
    found = []
    for group in groups:
        queues = sum(key[0] == "queue" for key, _ in group)
        found += sorted(group, key=partial(_place, many=queues >= MANY))
    return found


def _place(item: tuple[Subject, list[Shift | Told]], *, many: bool) -> tuple[bool, bool, bool, float, Subject]:
    key, moves = item
    decisive = any(isinstance(move, Shift) and move.measure in _DECISIVE for move in moves)
    broad = many and key[0] in _BROAD
    return (not decisive, not broad, key[0] in _PARTS, -_strength(moves), key)
