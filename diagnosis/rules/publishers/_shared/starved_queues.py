"""Queues that got messages steadily and get none any more, while their consumer waits and what fed them goes on.

A queue is quiet whenever its publisher is. It is starved if the exchange that fed it receives as many messages as
before: had the publisher stopped, they would be missing there. This is only known where the queue had a share of the
exchange that is larger than the exchange varies by itself. If another queue with a consumer gets as many more since,
its publisher uses that one now, as in a planned move.

What was usual decides what is too long: a pause must be several times as long as the longest before it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Channel, Queue
from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.purpose import federated_to, mqtt_client
from diagnosis.routes import bound_exchanges, dead_letter_targets
from diagnosis.rules.consumers._shared.comings import recent_clients
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in, messages_out
from diagnosis.rules.queues._shared.queue import is_lasting
from diagnosis.series import count, delta, last, readings_since, readings_until, span, unmoved_tail
from diagnosis.window import Series, Timestamped

_PAUSES = 4.0
"""Least ratio of the time without a message to the longest pause before it."""
_REFRESH = 6.0
"""Seconds by which a counter may be late, so that each pause may have been so much longer."""
_BEFORE, _AFTER = 60.0, 90.0
"""Seconds before and after the last message over which an exchange is compared: over a longer time its flow changes.
Before, its readings may be further apart.
"""
_DEVIATIONS, _LEAST_DISPERSION, _UNKNOWN_DISPERSION = 2.5, 0.2, 1.0
"""Standard deviations by which the flow of an exchange may differ, how much it varies at least, and where that is not
known: as much as if messages came independently.
"""
_SHARE = 0.5
"""Share of the former inflow of a queue that another number must have, so that it is about those messages."""
_LEAST_PART = 0.1
"""Least share that a queue must have had of what an exchange received; a smaller one may be missing unnoticed."""
_NEARLY_ALL = 0.9
"""Share of the publishes of a channel that are refused if it only repeats."""
_LEAST_COUNTED = 10
"""Least messages of a channel and of a queue whose numbers are equal, so that this is no coincidence."""
_MOST_QUEUES = 3
"""More queues of a virtual host that never got a message are there for rare events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietQueue:
    """A queue with a waiting consumer that got messages steadily and gets none any more.

    Attributes:
        quiet: its readings since the last message.
        rate: messages per second that it got before; 0 if that was not seen.
        pause: seconds of the longest pause before; 0 if that was not seen.
    """

    queue: Queue
    quiet: Series[Queue]
    rate: float
    pause: float

    @property
    def seconds(self) -> float:
        """Seconds without a message."""
        return span(self.quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class StarvedQueue:
    """A quiet queue, and what goes on without it.

    Attributes:
        exchanges: those that may have fed it, each of which receives as many messages as before.
        still_rate: messages per second that they receive now.
        moved_to: queues with consumers that get as many more since.
    """

    found: QuietQueue
    exchanges: tuple[str, ...]
    still_rate: float
    moved_to: tuple[str, ...]

    def facts(self, view: View) -> dict[str, Fact]:
        """Return `{"queue", "clients", "exchanges", "rate_before", "still_rate", "longest_pause_seconds"}`."""
        return {
            "queue": queue_facts(self.found.queue),
            "clients": [*recent_clients(view, self.found.queue)],
            "exchanges": list(self.exchanges),
            "rate_before": self.found.rate,
            "still_rate": self.still_rate,
            "longest_pause_seconds": self.found.pause,
        }


def starved_queues(view: View) -> tuple[StarvedQueue, ...]:
    """Return the starved queues, sorted; those whose messages another queue gets have `moved_to`."""
    return per_view(view, _starved_queues)


def fed_until(view: View, exchange: Exchange, lossy: Series[Exchange]) -> tuple[QuietQueue, ...]:
    """Return the queues of an exchange that got messages until it began to lose some, and none since.

    What they got must be about what is lost: more than that reached other queues.
    """
    began, lost = lossy[0].at, messages_in(lossy) - messages_out(lossy)
    rate = lost / max(span(lossy), 1.0)
    return tuple(
        each
        for each in quiet_queues(view)
        if each.queue.vhost == exchange.vhost
        and _routes_by(view, exchange.name, each.queue)
        and _SHARE * rate <= each.rate <= rate / _SHARE
        and abs(each.quiet[0].at.since(began)) <= _apart(view, began)
    )


def fed_by(view: View, exchange: Exchange, losers: Sequence[Channel]) -> tuple[QuietQueue, ...]:
    """Return the queues of an exchange that got just as many messages as a channel had routed before it lost all.

    This needs no reading from before: both have counted since the channel was opened. The queue gets none now.
    """
    routed = {
        count(each.stats, "publish") - count(each.stats, "drop_unroutable", "return_unroutable") for each in losers
    }
    return tuple(
        QuietQueue(queue=queue, quiet=history, rate=0.0, pause=0.0)
        for queue in view.queues
        if queue.vhost == exchange.vhost
        and queue.consumers
        and count(queue.stats, "publish") >= _LEAST_COUNTED
        and count(queue.stats, "publish") in routed
        and _is_plain(queue)
        and _routes_by(view, exchange.name, queue)
        and (history := view.history(queue))
        and len(history) > 1
        and not delta(history, "publish")
    )


def waiting_behind(view: View, full: Queue, refused: Sequence[Channel]) -> tuple[Queue, ...]:
    """Return the queues whose messages may come after those that a full queue refuses; () without such channels.

    They get messages from an exchange of the full queue, as far as is known, and got none in any reading, while
    the channels published nothing that was taken: a client that repeats a refused message sends nothing else.
    """
    if not refused or not all(_only_refused(view, each) for each in refused):
        return ()
    exchanges, least = bound_exchanges(view, full), view.limits(full).usual.silent_messages
    return tuple(
        queue
        for queue in view.queues
        if queue.vhost == full.vhost
        and queue.consumers
        and not queue.messages
        and queue.key != full.key
        and count(queue.stats, "publish") >= least
        and (bound_exchanges(view, queue) & exchanges or not exchanges)
        and not delta(view.history(queue), "publish")
        and span(view.history(queue)) >= view.thresholds.publishers.unroutable_after
    )


def _only_refused(view: View, channel: Channel) -> bool:
    """Return whether a channel in confirm mode publishes, and hardly anything of it is confirmed."""
    history = view.channel_history(channel.name)
    published = delta(history, "publish")
    return published > 0 and delta(history, "confirm") <= (1 - _NEARLY_ALL) * published


def never_fed(view: View, vhost: str) -> tuple[Queue, ...]:
    """Return the lasting queues with consumers that never got a message, as if another name were used; () if many."""
    found = per_view(view, _never_fed).get(vhost, ())
    return found if len(found) <= _MOST_QUEUES else ()


def quiet_queues(view: View) -> tuple[QuietQueue, ...]:
    """Return the queues with waiting consumers whose inflow stopped for longer than was usual, sorted."""
    return per_view(view, _quiet_queues)


def _quiet_queues(view: View) -> tuple[QuietQueue, ...]:
    found = (each for queue in view.queues if (each := _quiet(view, queue)) is not None)
    return tuple(sorted(found, key=lambda each: each.queue.key))


def _quiet(view: View, queue: Queue) -> QuietQueue | None:
    if not queue.consumers or queue.messages or not queue.stats.publish or not _is_plain(queue):
        return None
    if view.moved(queue, "publish") or not view.has_changed(queue):
        return None
    history = view.history(queue)
    quiet = unmoved_tail(history, "publish")
    before = history[: len(history) - len(quiet) + 1]
    limits = view.limits(queue)
    if len(quiet) < 2 or span(before) < limits.early:
        return None
    pause = _longest_pause(before)
    rate, seconds = delta(before, "publish") / span(before), span(quiet)
    if seconds < max(limits.publishers.unroutable_after, _PAUSES * (pause + _REFRESH)):
        return None
    if rate * seconds < limits.usual.silent_messages:
        return None
    return QuietQueue(queue=queue, quiet=quiet, rate=rate, pause=pause)


def _longest_pause(series: Series[Queue]) -> float:
    """Return the seconds of the longest run of readings without a new message."""
    longest, since = 0.0, series[0].at
    for older, newer in pairwise(series):
        if delta((older, newer), "publish"):
            since = newer.at
        longest = max(longest, newer.at.since(since))
    return longest


def _starved_queues(view: View) -> tuple[StarvedQueue, ...]:
    found = []
    for each in quiet_queues(view):
        rates = _rates(view, each, sorted(bound_exchanges(view, each.queue)) or ("",))
        # One that receives fewer than before may be the one that fed it.
        if rates and min(rates.values()) > 0:
            found.append(
                StarvedQueue(
                    found=each,
                    exchanges=tuple(rates),
                    still_rate=max(rates.values()),
                    moved_to=tuple(_gained_by(view, each)),
                )
            )
    return tuple(found)


def _rates(view: View, quiet: QuietQueue, exchanges: Iterable[str]) -> dict[str, float]:
    """Return what exchanges that may have fed a queue receive a second; 0 if that is less than before, or not clear."""
    if view.bindings is None:
        return {}
    found = {name: _goes_on(view, (quiet.queue.vhost, name), quiet) for name in exchanges}
    return {name: rate for name, rate in found.items() if rate is not None}


def _routes_by(view: View, exchange: str, queue: Queue) -> bool:
    """Return whether an exchange routes to a queue; the default one does where nothing else is bound to it."""
    bound = bound_exchanges(view, queue)
    return view.bindings is not None and (exchange in bound if bound else not exchange)


def _goes_on(view: View, exchange: tuple[str, str], quiet: QuietQueue) -> float | None:
    """Return the messages per second that an exchange receives as before; 0 if they are fewer or that is not clear.

    None if it cannot have fed the queue, because it received fewer than the queue got.
    """
    history, stopped = exchange_histories(view).get(exchange, ()), quiet.quiet[0].at
    if not history or not messages_in(history):
        return None
    before = last(readings_until(history, stopped.mono), _BEFORE)
    following = readings_since(history, stopped.mono)
    after = readings_until(following, stopped.mono + _AFTER)
    after = after if span(after) else following[:2]
    if not span(before) or not span(after):
        return 0.0
    then, least = _rate(before), _SHARE * quiet.rate
    if then < least:
        return None
    if quiet.rate < _LEAST_PART * then:
        return 0.0
    varies = max(_LEAST_DISPERSION, _dispersion(before), _dispersion(after))
    unsure = _DEVIATIONS * sqrt(varies * then * (1 / span(before) + 1 / span(after)))
    # It must not have become less meanwhile, either.
    same = unsure <= least and _rate(after) >= then - unsure and _rate(following) >= then - least
    latest = _rate(last(history, view.thresholds.interval))
    return latest if same and latest >= least else 0.0


def _rate(series: Series[Exchange]) -> float:
    return messages_in(series) / span(series) if span(series) else 0.0


def _dispersion(series: Series[Exchange]) -> float:
    """Return variance by mean of the messages that an exchange received between its readings."""
    if len(series) < 3 or not messages_in(series):
        return _UNKNOWN_DISPERSION
    rate = _rate(series)
    found = sum((messages_in(pair) - rate * span(pair)) ** 2 / span(pair) for pair in pairwise(series))
    return found / rate / (len(series) - 2)


def _gained_by(view: View, quiet: QuietQueue) -> Iterator[str]:
    """Yield the consumed queues of the virtual host that got at least as many more since the last message."""
    for other in view.queues:
        if other.vhost != quiet.queue.vhost or other.key == quiet.queue.key or not other.consumers:
            continue
        if not other.stats.publish or not view.moved(other, "publish"):
            continue
        if _came(view, other, quiet.quiet[0]) >= _SHARE * quiet.rate:
            yield other.name


def _came(view: View, queue: Queue, stopped: Timestamped[Queue]) -> float:
    """Return how many messages per second more a queue gets since a moment than before."""
    history = view.history(queue)
    before, after = last(readings_until(history, stopped.at.mono), _BEFORE), readings_since(history, stopped.at.mono)
    then = delta(before, "publish") / span(before) if span(before) else 0.0
    return delta(after, "publish") / span(after) - then if span(after) else 0.0


def _never_fed(view: View) -> dict[str, tuple[Queue, ...]]:
    found: dict[str, list[Queue]] = {}
    targets = dead_letter_targets(view)
    for queue in view.queues:
        unused = not queue.messages and not count(queue.stats, "publish", "deliver", "deliver_no_ack")
        if queue.consumers and unused and queue.key not in targets and is_lasting(queue) and _is_plain(queue):
            found.setdefault(queue.vhost, []).append(queue)
    return {vhost: tuple(sorted(queues, key=lambda each: each.name)) for vhost, queues in found.items()}


def _is_plain(queue: Queue) -> bool:
    return queue.type != "stream" and mqtt_client(queue) is None and federated_to(queue) is None


def _apart(view: View, moment: Instant) -> float:
    """Return the seconds between the two readings of exchanges around a moment, and some for late counters."""
    times = [seen.at.mono for seen in view.window.readings("exchanges")]
    earlier = [each for each in times if each < moment.mono]
    later = [each for each in times if each > moment.mono]
    return (later[0] if later else moment.mono) - (earlier[-1] if earlier else moment.mono) + _REFRESH
