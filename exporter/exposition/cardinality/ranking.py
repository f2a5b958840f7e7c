"""Who gets the places under a cap: pure, from rankings and from who has had one."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import TypeVar

T = TypeVar("T")

STAY = 300.0
"""Seconds that an object keeps its place after it last earned it, where there is room."""

AT_ONCE = 20
"""One place in so many goes by rank alone, whoever had it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Who may get a place.

    Attributes:
        keys: all objects.
        first: those that a pattern names.
        never: those that a pattern rules out.
        rankings: keys in the order of one quantity each, the largest first; those that have none of it are not in it.
    """

    keys: Mapping[Hashable, object]
    included: AbstractSet[Hashable] = field(default_factory=frozenset)
    excluded: AbstractSet[Hashable] = field(default_factory=frozenset)
    rankings: Sequence[Sequence[Hashable]] = ()


def ranking(values: Iterable[tuple[float, Hashable]], cap: int) -> list[Hashable]:
    """The keys of the largest values, at most `cap` of them; without those whose value is nothing."""
    some = [pair for pair in values if pair[0]]
    return [key for _, key in heapq.nlargest(cap, some, key=itemgetter(0))]


def assign_places(
    candidates: Candidates, holders: Mapping[Hashable, float], cap: int, now: float
) -> dict[Hashable, float]:
    """Who gets a place, and until when it is earned.

    First those that a pattern names, then the very top of the rankings, then those that have earned theirs within
    `STAY`, then the rest of the rankings, then those that had one, then anyone. So what matters most is shown at once,
    and where thousands matter alike, their series do not change places at every poll.

    Args:
        candidates: who may get one.
        held: who has one now, and until when it is earned.
        cap: how many places there are.
        now: seconds on the clock of `held`.
    """
    may = _may(candidates)
    included = (
        [key for key in candidates.keys if key in candidates.included and may(key)] if candidates.included else []
    )
    if len(included) > cap:  # they share the places among themselves, by the same rules
        alone = Candidates(keys=dict.fromkeys(included), rankings=candidates.rankings)
        return assign_places(alone, holders, cap, now)
    top = list(islice(filter(may, _merged(candidates.rankings)), cap))
    had = [key for key in holders if may(key)]
    earned = sorted((key for key in had if holders[key] > now), key=lambda key: -holders[key])
    very = max(1, cap // AT_ONCE)
    places: dict[Hashable, float] = {}
    for group in (included, top[:very], earned, top, had, filter(may, candidates.keys)):
        for key in group:
            if len(places) >= cap:
                break
            places.setdefault(key, holders.get(key, now + STAY))
    for key in (*included, *top):
        if key in places:
            places[key] = now + STAY
    # Those that stay keep their order, so that the text of one moment reads like that of the moment before.
    return {key: places[key] for key in (*(key for key in holders if key in places), *places)}


def _may(candidates: Candidates) -> Callable[[Hashable], bool]:
    return lambda key: key in candidates.keys and key not in candidates.excluded


def _merged(rankings: Sequence[Sequence[Hashable]]) -> dict[Hashable, None]:
    """The first of each, then the second of each, and so on."""
    merged: dict[Hashable, None] = {}
    for index in range(max(map(len, rankings), default=0)):
        for keys in rankings:
            if index < len(keys):
                merged.setdefault(keys[index])
    return merged
