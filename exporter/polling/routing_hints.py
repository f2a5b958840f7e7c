"""Exchanges that begin to route fewer copies of what they receive, so that their bindings are read again soon."""

from typing import TYPE_CHECKING

from ackscope.snapshot import Part
from ackscope.topology import Bindings, Exchange

if TYPE_CHECKING:
    from ackscope.clock import Instant

_FEWEST = 5
"""Messages between two readings of an exchange, below which its counters say nothing."""
_FEWER = 0.9
"""Copies of each message, compared with those before, from which on fewer are routed than before."""

Key = tuple[str, str]


class RoutingHints:
    """Follows the exchanges from one reading to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._counters: dict[Key, tuple[int, int]] = {}
        self._copies: dict[Key, float] = {}
        self._exchanges_at: Instant | None = None
        self._suspected: Instant | None = None

    def update(self, exchanges: Part[tuple[Exchange, ...]], bindings: Part[Bindings]) -> frozenset[str]:
        """Return the families to read soon, given the latest readings.

        These are the bindings from when an exchange begins to route less, and then the exchanges once more: a rule
        compares what they routed before and after a binding was missing.
        """
        if exchanges.at is not None and exchanges.at != self._exchanges_at:
            self._exchanges_at = exchanges.at
            if self._routes_less(exchanges.value or ()):
                self._suspected = self._suspected or exchanges.at
        if self._suspected is None:
            return frozenset()
        if bindings.at is None or bindings.at.mono < self._suspected.mono:
            return frozenset({"bindings"})
        if exchanges.at is not None and exchanges.at.mono < bindings.at.mono:
            return frozenset({"exchanges"})
        self._suspected = None
        return frozenset()

    def _routes_less(self, exchanges: tuple[Exchange, ...]) -> bool:
        """Record the counters; return whether one exchange routes fewer copies than between the readings before."""
        counters: dict[Key, tuple[int, int]] = {}
        copies: dict[Key, float] = {}
        found = False
        for each in exchanges:
            if each.stats.publish_in is None:
                continue
            counters[each.key] = arrived, routed = each.stats.publish_in, each.stats.publish_out or 0
            known = self._copies.get(each.key)
            if known is not None:
                copies[each.key] = known
            before = self._counters.get(each.key)
            if before is None or arrived - before[0] < _FEWEST or routed < before[1]:
                continue
            now = (routed - before[1]) / (arrived - before[0])
            copies[each.key] = now
            found |= known is not None and now < _FEWER * known
        self._counters, self._copies = counters, copies
        return found
