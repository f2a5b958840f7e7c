"""Ledger of a queue: messages that came in against messages that left or are stored. What does not balance is lost.

All terms are counters and lengths of `/api/queues`:

    arrived   = publish
    delivered = deliver + get - redeliver           first deliveries that a client must settle
    auto      = deliver_no_ack + get_no_ack         settled by the broker on delivery
    discarded = delivered - ack - unacked           settled without an ack: rejected, or requeued and ready again
    vanished  = arrived - delivered - auto - ready  gone before any delivery: expired, dropped, refused, purged
    missing   = discarded + vanished                a requeued message adds to one what it takes from the other

Messages that arrive without a publish (dead letters) lower `vanished` and `missing`, so all three are lower bounds.
The counters come from channels and the lengths from the queue; each is refreshed every 5 s at its own time. `error`
bounds what that delay can explain. When a queue is quiet it is 0, and the count is exact.

The last counts of a channel that ends may be lost (`_SWEEP_SECONDS`). What its consumer took then looks vanished, and
what it held looks discarded. `error` bounds this too, where the number of consumers shows that some ended.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ackscope.counters import MessageStats
from ackscope.protocols import AMQP10, MQTT, native_protocol
from ackscope.snapshot import Connection, Queue
from diagnosis.memo import per_view
from diagnosis.purpose import CONSUMED, DELIVERED, MQTT_SESSIONS, POLLED
from diagnosis.series import count, delta, last, span, stretch
from diagnosis.view import View, is_own
from diagnosis.window import Series, Timestamped

SKEW_SECONDS = 6.0
"""Maximum difference in age between two statistics of one answer: the interval of 5 s, and some delay."""


OLDEST_SECONDS = 12.0
"""Maximum age of a statistic: its queue refreshes it every 5 s, the management agent collects it every 5 s, and some
delay. Source: https://www.rabbitmq.com/docs/management#statistics-interval; seen on 4.3.6.
"""
_REFRESHED = 4.5
"""Seconds after which a statistic is refreshed again: 5 s, and polls are not exactly 5 s apart."""

_SWEEP_SECONDS = 120.0
"""Seconds between two sweeps of the broker. One removes the counters of channels that have ended, and with them what
was not collected yet: up to 5 s of deliveries and acknowledgements. Source: rabbit_core_metrics_gc; seen on 4.3.6.
"""
_LEAST_POLLED = 0.1
"""Share of the published messages that clients polled, from which on a queue without a consumer is polled."""

_NO_COUNTERS = MessageStats()

UNCOUNTED = (AMQP10, MQTT)
"""Protocols whose messages the management API does not count per queue. Source: rabbitmq-server issue 16528."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The cumulative terms of one reading, as the module describes them."""

    arrived: int
    delivered: int
    auto: int
    acked: int
    ready: int
    unacked: int
    held: int

    @property
    def discarded(self) -> int:
        """Messages that were delivered, and are neither acknowledged nor unacknowledged."""
        return self.delivered - self.acked - self.unacked

    @property
    def vanished(self) -> int:
        """Messages that were never delivered and are not ready."""
        return self.arrived - self.delivered - self.auto - self.ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The balance of one queue over a period.

    Attributes:
        arrived, acked, auto: messages published, acknowledged, and delivered with automatic acknowledgement.
        delivered: first deliveries that a client must settle.
        redelivered: deliveries of messages that had been delivered before.
        discarded: minimum of messages that consumers settled without an ack and that are not in the queue any more.
        vanished: minimum of messages that left the queue before any delivery.
        discarded_error, vanished_error: what the delay between counters can explain, in both directions, and what
            channels that ended may have taken uncounted.
        uncounted: the part of `vanished_error` that channels which ended may have taken.
        stored: increase of ready, unacknowledged and held messages.
    """

    arrived: int
    delivered: int
    acked: int
    auto: int
    redelivered: int
    discarded: int
    vanished: int
    discarded_error: int
    vanished_error: int
    uncounted: int
    stored: int

    @property
    def proven_discarded(self) -> int:
        """Messages discarded after delivery, without those that the delay between counters can explain."""
        return max(0, self.discarded - self.discarded_error)

    @property
    def perhaps_uncounted(self) -> int:
        """Messages gone before delivery that only channels which ended can explain."""
        return max(0, self.vanished - self.vanished_error + self.uncounted)

    @property
    def proven_vanished(self) -> int:
        """Messages gone before delivery, without those that the delay between counters can explain."""
        return max(0, self.vanished - self.vanished_error)


_NEW = Levels(arrived=0, delivered=0, auto=0, acked=0, ready=0, unacked=0, held=0)
"""The terms of a queue in which nothing has happened yet."""


def levels(queue: Queue) -> Levels | None:
    """Return the terms of a queue at one reading; None if a length is unknown or the queue is a stream.

    Without any length and counter a queue is new and counts as empty: the broker reports both some seconds late. If it
    was recovered after a restart, what it holds arrives without a publish and only lowers what is missing.
    """
    stats = queue.stats
    if queue.messages_ready is None and queue.messages_unacked is None and stats == _NO_COUNTERS:
        return _NEW
    if queue.messages_ready is None or queue.messages_unacked is None or queue.type == "stream":
        return None
    return Levels(
        arrived=stats.publish or 0,
        delivered=(stats.deliver or 0) + (stats.get or 0) - (stats.redeliver or 0),
        auto=(stats.deliver_no_ack or 0) + (stats.get_no_ack or 0),
        acked=stats.ack or 0,
        ready=queue.messages_ready,
        unacked=queue.messages_unacked,
        held=queue.messages_dlx or 0,
    )


def may_have_lost(view: View, queue: Queue) -> bool:
    """Return whether messages are missing since the counters of a queue began; cheap, for brokers with many queues."""
    missing = per_view(view, _missing)
    return bool(missing) and queue.key in missing


def _missing(view: View) -> frozenset[tuple[str, str]]:
    known = ((queue.key, levels(queue)) for queue in view.queues)
    return frozenset(key for key, now in known if now is not None and (now.discarded > 0 or now.vanished > 0))


def ledger(
    history: Series[Queue],
    in_flight: int | None = None,
    skew: float = SKEW_SECONDS,
    most: int | None = None,
    returned: int | None = None,
) -> Ledger | None:
    """Return the balance of a queue over readings without a restart of its counters.

    Args:
        history: readings, oldest first.
        in_flight: maximum number of messages that its consumers may hold; None if there is no limit.
        skew: maximum difference in age between two statistics of one answer, seconds.
        most: the most that channels which ended may have taken uncounted; by default from these readings.
        returned: the most messages that consumers returned and that are ready at the end; None if all may be.

    Returns:
        The balance since the first reading from which on all lengths are known; None with fewer than two such readings.
    """
    history = stretch(history, lambda older, newer: levels(older.value) is not None and levels(newer.value) is not None)
    known = [each for seen in history if (each := levels(seen.value)) is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    discarded, vanished = last.discarded - first.discarded, last.vanished - first.vanished
    # Older readings are further apart, so a burst beside the first one cannot be seen. Then the second one counts. The
    # counters of a queue that was new then tell of all that has happened since.
    apart = first != _NEW and history[1].at.since(history[0].at) > 2 * SKEW_SECONDS
    early_discarded = max(0, known[1].discarded - first.discarded) if apart else 0
    early_vanished = max(0, known[1].vanished - first.vanished) if apart else 0
    held = max(0, last.held - first.held)
    missing = discarded + vanished - held
    # Deliveries and acks are of one channel, so only messages in flight can be counted at one time and not the other.
    settling = _moved_within(skew, history, lambda each: each.unacked, "deliver", "get")
    # In the first seconds of a queue, a consumer that held more may have come and gone before the lengths are read.
    if in_flight is not None and (first != _NEW or span(history) > 2 * SKEW_SECONDS):
        settling = min(settling, 2 * max(in_flight, *(each.unacked for each in known)))
    moving = _moved_within(skew, history, lambda each: each.held, "publish")
    moving += _moved_within(skew, history, lambda each: each.ready, *DELIVERED)
    # A requeued message is ready again. Either there are fewer ready messages, or it is missing in neither way.
    waiting = last.ready if returned is None else min(last.ready, returned)
    not_ready, not_counted = discarded - waiting - held, min(discarded, missing)
    proven = max(0, not_ready - settling, not_counted - settling - moving)
    lost = max(0, not_ready, not_counted)
    most = _most_delivered(history) if most is None else most
    ends = _client_ends(history)
    uncounted = _swept(history, ends, lambda each: each.vanished, most)
    unsettled = _swept(history, ends, lambda each: each.discarded, max(each.unacked for each in known) or most)
    return Ledger(
        arrived=last.arrived - first.arrived,
        delivered=last.delivered - first.delivered,
        acked=last.acked - first.acked,
        auto=last.auto - first.auto,
        redelivered=delta(history, "redeliver"),
        discarded=lost,
        vanished=max(0, min(vanished - held, missing)),
        discarded_error=min(lost, lost - proven + early_discarded + unsettled),
        vanished_error=early_vanished + moving + uncounted,
        uncounted=uncounted,
        stored=(last.ready + last.unacked + last.held) - (first.ready + first.unacked + first.held),
    )


def _swept(history: Series[Queue], ends: list[int], term: Callable[[Levels], int], most: int) -> int:
    """Return by how much a term may have risen because counts of channels that ended were lost.

    Args:
        history: readings whose lengths are known.
        ends: `_client_ends` of them.
        term: the term of the ledger.
        most: how much one sweep can account for.
    """
    rises: list[tuple[int, int]] = []
    for place in ends:
        # Length and counters are refreshed at other times, so it may be seen a reading earlier or later.
        before, after = (
            levels(history[max(place - 2, 0)].value),
            levels(history[min(place + 1, len(history) - 1)].value),
        )
        if before is not None and after is not None:
            rises.append((min(term(after) - term(before), most), place))
    found: list[int] = []
    total = 0
    for rise, place in sorted(rises, reverse=True):
        if rise > 0 and len(found) <= span(history) // _SWEEP_SECONDS and all(abs(place - it) > 2 for it in found):
            found.append(place)
            total += rise
    return total


def _client_ends(history: Series[Queue]) -> list[int]:
    """Return the readings before which a client may have ended: a consumer left, or one came and went unseen."""
    visited = served_by_visits(history)
    consumers = [seen.value.consumers or 0 for seen in history]
    return [
        place
        for place, (before, after) in enumerate(pairwise(consumers), start=1)
        if (before > after if before or after else visited)
    ]


def served_by_visits(history: Series[Queue]) -> bool:
    """Return whether clients come to a queue, take messages, and go: it is polled, or a consumer came."""
    stats = history[-1].value.stats
    polled = count(stats, *POLLED)
    if polled > 0 and polled >= _LEAST_POLLED * count(stats, "publish"):
        return True
    return any(_came(history, each) for each in range(1, len(history)))


def most_uncounted(view: View, queue: Queue) -> int | None:
    """Return 0 if no channel that took messages from a queue can have ended, else None: `ledger` then bounds it.

    Only counters of channels that end are lost. Those that poll are open if they polled as much as the queue counts.
    """
    polled = count(queue.stats, *POLLED)
    if not polled or count(queue.stats, "deliver", "deliver_no_ack"):
        return None
    own = (each for each in view.channels if each.vhost == queue.vhost)
    return 0 if sum(count(each.stats, *POLLED) for each in own) >= polled else None


def _came(history: Series[Queue], place: int) -> bool:
    """Return whether a consumer came between two readings, and perhaps went again.

    What is counted after the first reading without a consumer may have been delivered before it.
    """
    absent = [seen.value.consumers == 0 for seen in history[max(place - 2, 0) : place + 1]]
    if absent[-2] and not absent[-1]:
        return True
    return len(absent) > 2 and all(absent) and delta(history[place - 1 : place + 1], *DELIVERED) > 0


def _most_delivered(history: Series[Queue]) -> int:
    """Return the most messages that clients took within the seconds before a sweep; by length if none was counted.

    A client that came and went between two readings may have taken all of its messages at once.
    """
    counted = fell = 0
    for older, newer in pairwise(history):
        stayed = older.value.consumers or newer.value.consumers
        share = min(1.0, SKEW_SECONDS / newer.at.since(older.at)) if stayed else 1.0
        left = (older.value.messages_ready or 0) + delta((older, newer), "publish") - (newer.value.messages_ready or 0)
        counted = max(counted, math.ceil(share * delta((older, newer), *DELIVERED)))
        fell = max(fell, left)
    return counted or fell


def settled_after(history: Series[Queue], seconds: float) -> int:
    """Return how many messages clients may have settled in the seconds after the last reading.

    At their best recent rate; the age of that reading is added to the time. 0 if one reading only is known.
    """
    best = 0.0
    for older, newer in pairwise(last(history, 2 * SKEW_SECONDS)):
        one, other = levels(older.value), levels(newer.value)
        discarded = 0 if one is None or other is None else max(0, other.discarded - one.discarded)
        best = max(best, (delta((older, newer), *CONSUMED) + discarded) / newer.at.since(older.at))
    return math.ceil(best * (seconds + OLDEST_SECONDS))


def from_its_beginning(view: View, queue: Queue) -> Series[Queue]:
    """Return the history of a queue; before its first reading, one that is new in the window was empty."""
    history, since = view.history(queue), view.listed_since(queue)
    before = [seen.at for seen in view.window.readings("queues") if since is not None and seen.at.mono < since.mono]
    if not before or not history or len(history) < len(view.readings_of(queue)):
        return history
    empty = replace(
        history[0].value,
        messages=0,
        messages_ready=None,
        messages_unacked=None,
        stats=_NO_COUNTERS,
        messages_dlx=None,
    )
    return (Timestamped(before[-1], empty), *history)


def _moved_within(skew: float, history: Series[Queue], length: Callable[[Levels], int], *counters: str) -> int:
    """Return how many messages moved within the delay between counters, at the start or at the end.

    They are seen in the counters, or in a length that is refreshed before them. What comes and goes between two
    refreshes is seen in a counter of the interval before. The broker refreshes each statistic at equal intervals, so
    the ages of two of them differ by one of two values that are one interval apart: the balance is wrong by one
    interval at one end, not at both. A burst over several intervals can exceed this by what moved in two of them.
    """

    def moved(pair: Series[Queue]) -> int:
        # Within a short interval all of it may be one refresh of the counters. So it may at the end, where a burst can
        # have come just before the reading (two readings alone have to do with the mean), and in the interval in which
        # a queue was made: it was filled at once, and its first length is that of its first moment.
        late = len(history) > 2 and history[-1].at.since(pair[1].at) < _REFRESHED
        burst = late or levels(pair[0].value) is _NEW
        return math.ceil((1.0 if burst else skew / max(span(pair), skew)) * delta(pair, *counters))

    def changed(pair: Series[Queue]) -> int:
        before, after = levels(pair[0].value), levels(pair[1].value)
        return 0 if before is None or after is None else abs(length(after) - length(before))

    # Before the first reading of a new queue nothing has happened, so nothing can be counted too late there.
    new = levels(history[0].value) == _NEW

    def near(pair: Series[Queue], seconds: float) -> bool:
        early = not new and pair[0].at.since(history[0].at) < seconds
        return early or history[-1].at.since(pair[1].at) < seconds

    pairs = list(pairwise(history))
    most = max(moved(pair) for pair in pairs if near(pair, 2 * _REFRESHED))
    return most + max(changed(pair) for pair in pairs if near(pair, _REFRESHED))


def losing(history: Series[Queue], term: Callable[[Levels], int], lost: int) -> Series[Queue]:
    """Return the readings between which the messages of a balance were lost.

    From the last one at which a term of the ledger was that much lower than at the end, to the first one at which it
    had its final value. Before that it may exceed this value: a length can be refreshed before the deliveries that
    explain it.
    """
    known = [(seen, term(each)) for seen in history if (each := levels(seen.value)) is not None]
    final = known[-1][1]
    start = max(place for place, (_, value) in enumerate(known[:-1]) if place == 0 or value <= final - lost)
    end = next(place for place, (_, value) in enumerate(known) if place > start and value == final)
    return tuple(seen for seen, _ in known[start : end + 1])


def settles_unseen(view: View, queue: Queue) -> bool:
    """Return whether a consumer of a queue leaves no counters: it uses another protocol than AMQP 0-9-1.

    Its messages would look lost. The management API shows such a consumer without a channel.
    """
    return any(not link.consumer.channel_name for link in view.links(queue))


def may_settle_unseen(view: View, queue: Queue) -> bool:
    """Return whether clients without counters may have used a queue within the window."""
    if settles_unseen(view, queue) or queue.key in per_view(view, _queues_of_sessions):
        return True
    if queue.name.startswith(MQTT_SESSIONS):
        return queue.vhost in per_view(view, _mqtt_vhosts) or _session_was_used(view, queue)
    return queue.vhost in per_view(view, _opaque_vhosts)


def _session_was_used(view: View, queue: Queue) -> bool:
    """Return whether the client of an MQTT session may have taken messages from it within the readings of the queue.

    Connections are kept for a shorter time than queues, so a client that left is in no reading of theirs. It was there
    when the session was made. One that comes back takes all, which looks like a purge.
    """
    history = from_its_beginning(view, queue)
    if any(seen.value.consumers for seen in history) or (history and levels(history[0].value) == _NEW):
        return True
    ready = [seen.value.messages_ready or 0 for seen in history]
    return any(newer * 2 < older for older, newer in pairwise(ready))


def _queues_of_sessions(view: View) -> frozenset[tuple[str | None, str]]:
    """Return the queues that AMQP 1.0 sessions consumed from within the window."""
    vhosts = {each.name: each.vhost for seen in view.window.readings("connections") for each in seen.value}
    return frozenset(
        (vhosts.get(session.connection_name), link.queue)
        for seen in view.window.readings("sessions")
        for session in seen.value
        for link in session.consuming
        if link.queue
    )


def _mqtt_vhosts(view: View) -> frozenset[str | None]:
    """Return the virtual hosts with MQTT clients, which consume from the queues of their own sessions only."""
    return frozenset(each.vhost for each in _uncounted(view) if native_protocol(each.protocol) == MQTT)


def _opaque_vhosts(view: View) -> frozenset[str | None]:
    """Return the virtual hosts with AMQP 1.0 clients whose queues are not known.

    They are known if each reading of the sessions shows the same links. A client that attaches a link for each message
    shows others, or none.
    """
    links: dict[str, set[frozenset[tuple[int, int, str | None]]]] = defaultdict(set)
    for seen in view.window.readings("sessions"):
        found: dict[str, set[tuple[int, int, str | None]]] = defaultdict(set)
        for session in seen.value:
            found[session.connection_name] |= {
                (session.number, link.handle, link.name) for link in (*session.consuming, *session.publishing)
            }
        for name, each in found.items():
            links[name].add(frozenset(each))
    return frozenset(
        each.vhost
        for each in _uncounted(view)
        if native_protocol(each.protocol) == AMQP10 and (len(links[each.name]) != 1 or not next(iter(links[each.name])))
    )


def _uncounted(view: View) -> Iterator[Connection]:
    """Yield the clients without counters; our own probes use queues of their own only."""
    for seen in view.window.readings("connections"):
        yield from (each for each in seen.value if native_protocol(each.protocol) in UNCOUNTED and not is_own(each))
