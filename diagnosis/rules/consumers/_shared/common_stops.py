"""Consumers of several queues that stopped at the same moment: they probably wait for the same thing.

The last acknowledgement is timed by counters of the queue: the oldest message that is held arrived when what was
published passed what left, and the readings between which the last acknowledgements were counted are bounds.
`idle_since` of the channels is no measure: the broker renews it once a minute after their opening, and clients that
were deployed together seem to have stopped together.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Fact, Finding
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.queue_flow import departures
from diagnosis.relations import both
from diagnosis.rules.cluster._shared.link_flow import stalled_links
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.stalled_consumers import Stall, stalls
from diagnosis.series import REFRESH, count, delta, span
from diagnosis.window import Series

_TOGETHER = 8.0
"""Seconds between the last acknowledgements of clients that stop at once: the counters of each are up to 5 s old."""
_CONNECTED = 10.0
"""Seconds for which a client must have been connected when it stopped; one that starts may not have worked yet."""


_SKEW = 0.15
"""Share of the messages of a queue by which counters of different ages may differ."""


@dataclass(frozen=True, slots=True)
class CommonStop:
    """Queues whose consumers, of different clients, stopped within a few seconds.

    Attributes:
        stalls: one for each queue, in the order of the view.
        clients: their names, sorted.
        seconds: between the first and the last of them; at least one refresh of the broker's statistics.
    """

    stalls: tuple[Stall, ...]
    clients: tuple[str, ...]
    seconds: float

    def facts(self) -> dict[str, Fact]:
        """Return `{"consumers", "queues", "clients", "within_seconds"}`."""
        return {
            "consumers": sum(len(each.stuck) for each in self.stalls),
            "queues": sorted(each.queue.name for each in self.stalls),
            "clients": list(self.clients),
            "within_seconds": self.seconds,
        }


def common_stop(view: View, queue: Queue) -> CommonStop | None:
    """Return the stop that the consumers of a queue share with those of other queues; None if they stopped alone."""
    return per_view(view, _by_queue).get(queue.key)


def _keys(view: View, finding: Finding) -> Iterable[Hashable]:
    stops = per_view(view, _by_queue)
    return (stops[key].stalls[0].queue.key for key in queue_key(view, finding) if key in stops)


STOPPED_TOGETHER = both(_keys)
"""Both are about queues whose consumers stopped at the same moment."""


def _by_queue(view: View) -> Mapping[Hashable, CommonStop]:
    return {stall.queue.key: stop for stop in _stops(view) for stall in stop.stalls}


def _stops(view: View) -> Iterator[CommonStop]:
    """Yield groups of stalls, each within a few seconds from its first one."""
    links = {stall.queue.key for _, stall in stalled_links(view)}
    timed = [(at, stall) for stall in stalls(view) if stall.queue.key not in links and (at := _stopped_at(view, stall))]
    for group in stopped_within(timed, _TOGETHER):
        yield from _group(group)


def stopped_within(timed: Iterable[tuple[float, Stall]], seconds: float) -> Iterator[list[tuple[float, Stall]]]:
    """Yield groups of stalls with their times, each within some seconds from its first one, in the order of time."""
    group: list[tuple[float, Stall]] = []
    for at, stall in sorted(timed, key=lambda pair: (pair[0], pair[1].queue.key)):
        if group and at - group[0][0] > seconds:
            yield group
            group = []
        group.append((at, stall))
    if group:
        yield group


def _group(group: list[tuple[float, Stall]]) -> Iterator[CommonStop]:
    clients = sorted({name for _, stall in group for name in _clients(stall)})
    # One client on several queues is a cause of its own. If nothing is published either, the broker may stand still.
    if len(group) > 1 and len(clients) > 1 and any(stall.published for _, stall in group):
        yield CommonStop(tuple(stall for _, stall in group), tuple(clients), max(REFRESH, group[-1][0] - group[0][0]))


def _clients(stall: Stall) -> Iterator[str]:
    for link in stall.stuck:
        yield client_name(link.connection, link.consumer.connection_name) or ""


def _stopped_at(view: View, stall: Stall) -> float | None:
    """Return when the consumers of a queue stopped, wall clock; None if that is unknown or they have just connected."""
    counted = not stall.amqp10 and not stall.mqtt and stall.lag is None
    if not counted or not stall.whole_queue or stall.never_acked or stall.gathered:
        return None
    at = _last_departure(view.history(stall.queue))
    opened = [link.connection.connected_at if link.connection else None for link in stall.stuck]
    if at is None or not all(each is not None and each + _CONNECTED <= at for each in opened):
        return None
    return at


def _last_departure(history: Series[Queue]) -> float | None:
    """Return when the last message left a queue, wall clock: when the first one that is still there arrived.

    If messages were ready already, that is too early; then the readings tell, if they are close enough.
    """
    left = departures(history[-1].value)
    arrived = _arrival(history, left + 1)
    moved = [pair for pair in pairwise(history) if departures(pair[0].value) < left]
    if not moved:
        return arrived if _balances(history[-1].value, left) else None
    first, last = moved[-1][0].at.wall - REFRESH, moved[-1][1].at.wall
    if arrived is not None and first <= arrived <= last + REFRESH:
        return arrived
    return (first + last) / 2 if last - first <= 2 * _TOGETHER else None


def _balances(queue: Queue, left: int) -> bool:
    """Return whether all that was published, and nothing else, left the queue or is there."""
    apart = count(queue.stats, "publish") - left - (queue.messages or 0)
    return abs(apart) <= _SKEW * (queue.messages or 0)


def _arrival(history: Series[Queue], number: int) -> float | None:
    """Return when a message arrived by the publish counter, wall clock; before the first reading by its rate."""
    for older, newer in pairwise(history):
        before, after = count(older.value.stats, "publish"), count(newer.value.stats, "publish")
        if before < number <= after:
            return older.at.wall + (number - before) / (after - before) * newer.at.since(older.at)
    # Over a short time, the broker's own rate is more exact than two readings of a counter.
    rate = history[-1].value.rates.get("publish") or delta(history, "publish") / max(1.0, span(history))
    first = count(history[0].value.stats, "publish")
    return history[0].at.wall - (first - number) / rate if rate > 0 and number <= first else None
