"""Queues that get nothing since bindings on their way were removed, while what fed them goes on.

The bindings may be those of the queue, or those between exchanges before it: an exchange that is deleted and declared
again has none of its bindings left, and no error shows it where other queues still get the messages. Only exchanges
that clients publish to have counters, so the inflow is looked for at all exchanges from which the queue was reached.

A queue that is deleted loses its bindings, too. One of that name that a client declares again without them counts from
the beginning, so what came before is read from the former one.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from ackscope.topology import Binding, Exchange
from diagnosis.contract import View
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in
from diagnosis.series import count, delta, life, readings_since, readings_until, span, unmoved_tail
from diagnosis.window import Series, Timestamped

_BEFORE, _AFTER = 45.0, 10.0
"""Seconds before and after the first reading without a binding in which the inflow of its queue must have stopped:
bindings are read every 30 s, and counters are some seconds old.
"""
BINDS_WITHIN = 5.0
"""Seconds within which a client that has connected, or declared its queue again, binds it."""
_GOES_ON = 0.5
"""Least share of the former inflow of a queue that an exchange must still receive."""

Removals = Mapping[tuple[str, str], Iterable[Timestamped[Binding]]]
"""Exchange -> bindings that began there and were removed, with the first reading without them."""
K = TypeVar("K", bound=Hashable)
_Place = tuple[str, str, str]
"""Virtual host, "exchange" or "queue", and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOffQueue:
    """A queue with a consumer that gets nothing since bindings on its way were removed.

    Attributes:
        exchange: the exchange that fed it, and receives as many messages as before.
        removed: the bindings on its way that were removed, its own first.
        rate: messages per second that it got before.
        quiet: its readings since the last message.
        is_new: whether it was deleted and declared again, and has got no message since.
    """

    queue: Queue
    exchange: Exchange
    removed: tuple[Timestamped[Binding], ...]
    rate: float
    quiet: Series[Queue]
    is_new: bool = False


def cut_off_queues(view: View, removed: Removals) -> Iterator[CutOffQueue]:
    """Yield the queues that were cut off by removed bindings, sorted."""
    lasting = [
        each
        for bindings in removed.values()
        for each in bindings
        if each.value.destination_type != "queue" or view.queue(each.value.vhost, each.value.destination) is not None
    ]
    if not lasting:
        return
    ways = _Ways(view, lasting)
    for vhost, name in ways.queues_behind():
        queue = view.queue(vhost, name)
        if queue is not None and queue.consumers and (found := _cut_off(view, queue, ways)):
            yield found


def _cut_off(view: View, queue: Queue, ways: "_Ways") -> CutOffQueue | None:
    readings = view.history(queue)
    quiet = unmoved_tail(readings, "publish")
    if len(quiet) < 2:
        return None
    former = _former(view, queue, quiet)
    ended, rate = (former.ended, former.rate) if former else (quiet[0].at, _rate_until(view, queue, quiet[0]))
    gone = [each for each in ways.removed_before(queue) if -_BEFORE <= ended.since(each.at) <= _AFTER]
    if former:
        rate = (rate or ways.rate_beside(gone, quiet)) if _is_listed_since(view, quiet) else 0.0
    if not gone or not rate or rate * span(quiet) < view.thresholds.topology.binding_lost:
        return None
    before = ways.exchanges_before(queue, gone)
    fed_by = sorted(
        (each for each in view.exchanges if each.key in before and _goes_on(view, each.key, rate, quiet)),
        key=lambda each: before.index(each.key),
    )
    if not fed_by or ways.is_replaced(queue, gone, fed_by):
        return None
    return CutOffQueue(
        queue=queue, exchange=fed_by[0], removed=tuple(gone), rate=rate, quiet=quiet, is_new=former is not None
    )


@dataclass(frozen=True, slots=True)
class _FormerQueue:
    """The queue of the same name that was deleted before.

    Attributes:
        ended: the first reading without it.
        rate: messages per second that it got; 0 if one reading is left that does not show since when.
    """

    ended: Instant
    rate: float


def _former(view: View, queue: Queue, quiet: Series[Queue]) -> _FormerQueue | None:
    """Return the queue that one without any message replaced; None if there was none within the window."""
    if count(quiet[0].value.stats, "publish"):
        return None
    presence = view.presence(queue.key)
    before = [(at, there) for at, there in presence if there is not None and count(there.stats, "publish")]
    if not before:
        return None
    last = before[-1][0].mono
    after = [at for at, _ in presence if at.mono > last]
    readings = life(tuple(Timestamped(at, there) for at, there in before))
    absent = [at for at, there in presence if there is None and at.mono < readings[0].at.mono]
    if span(readings):
        rate = delta(readings, "publish") / span(readings)
    else:
        rate = count(readings[-1].value.stats, "publish") / readings[-1].at.since(absent[-1]) if absent else 0.0
    return _FormerQueue(after[0], rate) if after else None


def _is_listed_since(view: View, quiet: Series[Queue]) -> bool:
    """Return whether the bindings were read after the client of a new queue had time to bind it."""
    age = view.age("bindings")
    return age is not None and view.now.since(quiet[0].at) - age >= BINDS_WITHIN


def _goes_on(view: View, exchange: tuple[str, str], rate: float, quiet: Series[Queue]) -> bool:
    """Return whether an exchange receives at least about as many messages as a queue got, since that got none."""
    meanwhile = readings_since(exchange_histories(view).get(exchange, ()), quiet[0].at.mono)
    return span(meanwhile) > 0 and messages_in(meanwhile) >= _GOES_ON * rate * span(meanwhile)


def _rate_until(view: View, queue: Queue, end: Timestamped[Queue]) -> float:
    """Return messages per second that were published to a queue until a reading; 0 if that is not known."""
    readings = readings_until(view.history(queue), end.at.mono)
    if span(readings):
        return delta(readings, "publish") / span(readings)
    # A queue that was declared just before has counted from its beginning.
    absent = [at for at, there in view.presence(queue.key) if there is None and at.mono < end.at.mono]
    return count(end.value.stats, "publish") / end.at.since(absent[-1]) if absent else 0.0


class _Ways:
    """The bindings of now and those that were removed."""

    def __init__(self, view: View, removed: list[Timestamped[Binding]]) -> None:
        self._view = view
        self._now = tuple(view.bindings or ())
        self._removed = removed

    def queues_behind(self) -> list[tuple[str, str]]:
        """Return the queues that were reached over a removed binding, sorted."""
        ends = reached({_end(each.value) for each in self._removed}, _edges(self._all, backward=False))
        return sorted((vhost, name) for vhost, kind, name in ends if kind == "queue")

    def removed_before(self, queue: Queue) -> list[Timestamped[Binding]]:
        """Return the removed bindings over which a queue was reached, its own first."""
        before = reached({_place(queue.vhost, "queue", queue.name)}, self._back)
        found = [each for each in self._removed if _end(each.value) in before]
        return sorted(
            found,
            key=lambda each: (each.value.destination_type != "queue", each.value.source, each.value.routing_key),
        )

    def exchanges_before(self, queue: Queue, gone: list[Timestamped[Binding]]) -> list[tuple[str, str]]:
        """Return the exchanges from which a queue was reached over one of these bindings, the nearest ones first."""
        starts = {_place(each.value.vhost, "exchange", each.value.source) for each in gone}
        nearest = sorted({(queue.vhost, name) for _, _, name in starts})
        return [*nearest, *sorted({(vhost, name) for vhost, _, name in reached(starts, self._back) - starts})]

    def rate_beside(self, gone: list[Timestamped[Binding]], quiet: Series[Queue]) -> float:
        """Return messages per second that other queues get by bindings like those that are gone; 0 without one."""
        fanouts = {each.key for each in self._view.exchanges if each.type == "fanout"}
        lost = {_keyed(each.value) for each in gone}
        sources = {(each.value.vhost, each.value.source) for each in gone} & fanouts
        rates = [0.0]
        for each in self._now:
            alike = _keyed(each) in lost or (each.vhost, each.source) in sources
            other = self._view.queue(each.vhost, each.destination) if each.destination_type == "queue" else None
            if alike and other is not None:
                meanwhile = readings_since(self._view.history(other), quiet[0].at.mono)
                rates.append(delta(meanwhile, "publish") / max(1.0, span(meanwhile)))
        return max(rates)

    def is_replaced(self, queue: Queue, gone: list[Timestamped[Binding]], fed_by: list[Exchange]) -> bool:
        """Return whether a new binding leads to the queue, or takes the messages of a removed one elsewhere."""
        fed = reached({_place(each.vhost, "exchange", each.name) for each in fed_by}, self._forward)
        behind = reached({_place(queue.vhost, "queue", queue.name)}, self._back_now)
        # An exchange that was declared again and is not fed yet has nothing for the queues that are bound to it.
        dry = {_place(each.value.vhost, "exchange", each.value.source) for each in gone} - fed
        for new in self._added_since(min((each.at for each in gone), key=lambda at: at.mono)):
            begin = _place(new.vhost, "exchange", new.source)
            if begin in dry:
                continue
            if _end(new) in behind:
                return True
            if any((new.vhost, new.source, new.routing_key) == _keyed(each.value) for each in gone):
                return True
        return False

    def _added_since(self, moment: Instant) -> frozenset[Binding]:
        """Return the bindings of now that were not there in the reading before a moment."""
        readings = self._view.window.readings("bindings")
        before = [
            seen.value.listed for seen in readings if seen.at.mono < moment.mono and seen.value.listed is not None
        ]
        return frozenset(self._now) - frozenset(before[-1]) if before else frozenset()

    @property
    def _all(self) -> list[Binding]:
        return [*self._now, *(each.value for each in self._removed)]

    @cached_property
    def _back(self) -> Mapping[_Place, list[_Place]]:
        return _edges(self._all, backward=True)

    @cached_property
    def _back_now(self) -> Mapping[_Place, list[_Place]]:
        return _edges(self._now, backward=True)

    @cached_property
    def _forward(self) -> Mapping[_Place, list[_Place]]:
        return _edges(self._now, backward=False)


def reached(starts: Iterable[K], edges: Mapping[K, Iterable[K]]) -> set[K]:
    """Return everything that some starts lead to over any number of edges, with the starts."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        following = [each for each in edges.get(waiting.pop(), ()) if each not in found]
        found.update(following)
        waiting += following
    return found


def _edges(bindings: Iterable[Binding], *, backward: bool) -> Mapping[_Place, list[_Place]]:
    found: dict[_Place, list[_Place]] = defaultdict(list)
    for each in bindings:
        if each.source:
            begin, end = _place(each.vhost, "exchange", each.source), _end(each)
            found[end if backward else begin].append(begin if backward else end)
    return found


def _place(vhost: str, kind: str, name: str) -> _Place:
    return vhost, kind, name


def _end(binding: Binding) -> _Place:
    return binding.vhost, binding.destination_type, binding.destination


def _keyed(binding: Binding) -> tuple[str, str, str]:
    return binding.vhost, binding.source, binding.routing_key
