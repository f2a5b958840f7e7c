"""Both sides of a message brought together: its confirm and its deliveries, which may come in either order."""

from collections import OrderedDict

from ackscope.records import Outcome
from probes.confirm_ledger import Settled
from probes.stream_stats import DeliveryCounts, MessageEntry

_REMEMBERED = 20_000
"""Messages remembered after they were told, to know their duplicates by."""

_Key = tuple[int, int]


class _Seen:
    """The deliveries of one message."""

    __slots__ = ("count", "first", "out_of_order", "redelivered")

    def __init__(self, first: float, *, out_of_order: bool) -> None:
        self.first = first
        self.count = 0
        self.redelivered = False
        self.out_of_order = out_of_order


class Matcher:
    """Waits for both sides of each message of a run, over all its epochs.

    A confirmed message is awaited until it is delivered or `missing_after` has passed since it was sent. Of one that
    was not confirmed nothing is awaited; what is known of its deliveries by then is told with it.
    """

    def __init__(self, missing_after: float) -> None:
        self._limit = missing_after
        self._confirmed: OrderedDict[_Key, Settled] = OrderedDict()
        self._seen: OrderedDict[_Key, _Seen] = OrderedDict()
        self._highest: _Key = (0, 0)
        self.counts = DeliveryCounts()

    @property
    def pending(self) -> int:
        """Confirmed messages that have not been delivered yet."""
        return len(self._confirmed)

    def settled(self, epoch: int, settled: Settled) -> MessageEntry | None:
        """Enter an outcome; the message, when nothing more is awaited."""
        key = (epoch, settled.seq)
        if settled.outcome is Outcome.ACKED and key not in self._seen:
            self._confirmed[key] = settled
            return None
        return self._entry(key, settled)

    def delivered(self, epoch: int, seq: int, at: float, *, redelivered: bool) -> MessageEntry | None:
        """Enter a delivery; the message, when nothing more is awaited."""
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
            counts.redeliveries + redelivered, counts.duplicates + again, counts.out_of_order + (late and not again)
        )
        settled = self._confirmed.pop(key, None)
        return None if settled is None else self._entry(key, settled)

    def expire(self, now: float) -> list[MessageEntry]:
        """Messages that were confirmed and not delivered in time."""
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
        return MessageEntry(key[0], settled, seen.first - settled.sent, seen.count, seen.redelivered, seen.out_of_order)
