"""Assigns the places under a cardinality limit, from rankings and previous holders. Pure."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import TypeVar

T = TypeVar("T")

STAY = 300.0
"""Seconds that an object keeps its place after it last qualified, if there is room."""

AT_ONCE = 20
"""One of this many places is assigned by rank alone, regardless of previous holders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Candidates for a place.

    Attributes:
        keys: all objects.
        included: keys that match the include pattern.
        excluded: keys that match the exclude pattern.
        rankings: keys ordered by one quantity each, largest first; zeros are left out.
    """

    keys: Mapping[Hashable, object]
    included: AbstractSet[Hashable] = field(default_factory=frozenset)
    excluded: AbstractSet[Hashable] = field(default_factory=frozenset)
    rankings: Sequence[Sequence[Hashable]] = ()


def ranking(values: Iterable[tuple[float, Hashable]], cap: int) -> list[Hashable]:
    """Return the keys of the `cap` largest values; zeros are left out."""
    some = [pair for pair in values if pair[0]]
    return [key for _, key in heapq.nlargest(cap, some, key=itemgetter(0))]


def assign_places(
    candidates: Candidates, holders: Mapping[Hashable, float], cap: int, now: float
) -> dict[Hashable, float]:
    """Return the keys that get a place, and the time until which each has qualified.

    Places are assigned in this order: included keys, the very top of the rankings, holders that qualified within
    `STAY`, the rest of the rankings, other holders, anyone. So the most important objects are shown at once. If
    thousands are equally important, their series do not swap at every poll.

    Args:
        candidates: the candidates.
        holders: current holders -> time until which each has qualified.
        cap: number of places.
        now: current time in seconds, on the same clock as `holders`.
    """
    may = _may(candidates)
    included = (
        [key for key in candidates.keys if key in candidates.included and may(key)] if candidates.included else []
    )
    if len(included) > cap:  # included keys compete among themselves by the same rules
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
    # Holders keep their order, so that consecutive pages are similar.
    return {key: places[key] for key in (*(key for key in holders if key in places), *places)}


def _may(candidates: Candidates) -> Callable[[Hashable], bool]:
    return lambda key: key in candidates.keys and key not in candidates.excluded


def _merged(rankings: Sequence[Sequence[Hashable]]) -> dict[Hashable, None]:
    """Merge rankings: the first key of each, then the second of each, and so on."""
    merged: dict[Hashable, None] = {}
    for index in range(max(map(len, rankings), default=0)):
        for keys in rankings:
            if index < len(keys):
                merged.setdefault(keys[index])
    return merged
