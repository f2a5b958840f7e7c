"""Matches the confirm of each message with its deliveries, which may arrive in either order."""

from collections import OrderedDict

from ackscope.records import Outcome
from probes.confirm_ledger import Settled
from probes.stream_stats import DeliveryCounts, MessageEntry

_REMEMBERED = 20_000
"""Number of completed messages that are remembered to detect duplicates."""

_Key = tuple[int, int]


class _Seen:
    __slots__ = ("count", "first", "out_of_order", "redelivered")

    def __init__(self, first: float, *, out_of_order: bool) -> None:
        self.first = first
        self.count = 0
        self.redelivered = False
        self.out_of_order = out_of_order


class Matcher:
    """Waits for the confirm and the delivery of each message of a run, over all its epochs.

    A confirmed message is complete when it is delivered, or `missing_after` seconds after it was sent. A message with
    another outcome is complete immediately, with the deliveries known by then.

    Args:
        missing_after: seconds.
        redelivers: whether the protocol tells that a delivery is not the first; otherwise none is counted as such.
    """

    def __init__(self, missing_after: float, *, redelivers: bool = True) -> None:
        self._limit, self._redelivers = missing_after, redelivers
        self._confirmed: OrderedDict[_Key, Settled] = OrderedDict()
        self._seen: OrderedDict[_Key, _Seen] = OrderedDict()
        self._highest: _Key = (0, 0)
        self.counts = DeliveryCounts(redeliveries=0 if redelivers else None)

    @property
    def pending(self) -> int:
        """Number of confirmed messages that have not been delivered yet."""
        return len(self._confirmed)

    def settled(self, epoch: int, settled: Settled) -> MessageEntry | None:
        """Add an outcome. Returns the message if it is complete."""
        key = (epoch, settled.seq)
        if settled.outcome is Outcome.ACKED and key not in self._seen:
            self._confirmed[key] = settled
            return None
        return self._entry(key, settled)

    def delivered(self, epoch: int, seq: int, at: float, *, redelivered: bool) -> MessageEntry | None:
        """Add a delivery. Returns the message if it is complete."""
        key = (epoch, seq)
        seen = self._seen.get(key)
        late = key < self._highest
        if seen is None:
            seen = self._seen[key] = _Seen(at, out_of_order=late)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        self._highest = max(self._highest, key)
        again = seen.count > 0
        seen.count += 1
        seen.redelivered = seen.redelivered or redelivered
        counts = self.counts
        self.counts = DeliveryCounts(
            None if counts.redeliveries is None else counts.redeliveries + redelivered,
            counts.duplicates + again,
            counts.out_of_order + (late and not again),
        )
        settled = self._confirmed.pop(key, None)
        return None if settled is None else self._entry(key, settled)

    def expire(self, now: float) -> list[MessageEntry]:
        """Return the messages that were confirmed but not delivered in time."""
        expired = []
        while self._confirmed:
            key, settled = next(iter(self._confirmed.items()))
            if now - settled.sent < self._limit:
                break
            del self._confirmed[key]
            expired.append(self._entry(key, settled))
        return expired

    def _entry(self, key: _Key, settled: Settled) -> MessageEntry:
        seen = self._seen.get(key)
        if seen is None:
            awaited = settled.outcome is Outcome.ACKED
            return MessageEntry(key[0], settled, deliveries=0 if awaited else None)
        redelivered = seen.redelivered if self._redelivers else None
        return MessageEntry(key[0], settled, seen.first - settled.sent, seen.count, redelivered, seen.out_of_order)
