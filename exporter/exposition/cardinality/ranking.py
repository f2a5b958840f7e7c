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
"""One in this many places is given by rank alone, regardless of previous holders."""


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
    """Keys of the largest values, at most `cap`; zeros are left out."""
    some = [pair for pair in values if pair[0]]
    return [key for _, key in heapq.nlargest(cap, some, key=itemgetter(0))]


def assign_places(
    candidates: Candidates, holders: Mapping[Hashable, float], cap: int, now: float
) -> dict[Hashable, float]:
    """Key -> until when it has qualified for its place.

    The order is: included keys, the very top of the rankings, holders that qualified within `STAY`, the rest of the
    rankings, other holders, anyone. So the most important objects are shown at once, and where thousands are equally
    important their series do not swap at every poll.

    Args:
        candidates: the candidates.
        holders: key -> until when it has qualified, of the current holders.
        cap: number of places.
        now: seconds on the clock of `holders`.
    """
    may = _may(candidates)
    included = (
        [key for key in candidates.keys if key in candidates.included and may(key)] if candidates.included else []
    )
    if len(included) > cap:  # they compete among themselves by the same rules
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
    """The first of each ranking, then the second of each, and so on."""
    merged: dict[Hashable, None] = {}
    for index in range(max(map(len, rankings), default=0)):
        for keys in rankings:
            if index < len(keys):
                merged.setdefault(keys[index])
    return merged
