"""Messages that reached no queue because the queue for them was away: deleted with its bindings, and declared again.

An auto-delete queue goes with its last consumer, an exclusive one with its connection, and one with the setting expires
some time after its last consumer. Until a client declares it again, no binding takes its messages. A wrong key loses
messages all the time, so the queue is the reason only if each reading in which messages were lost overlaps with an
absence.
Source: https://www.rabbitmq.com/docs/queues#temporary-queues
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.rules.publishers._shared.exchange_counts import (
    exchange_histories,
    messages_in,
    messages_lost,
    messages_out,
)
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED, RETURNED, SAME_RATE, alternate_of
from diagnosis.rules.publishers._shared.probe_losses import own_losses
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, by_vhost, increase, was_routed
from diagnosis.rules.publishers._shared.unlisted_losses import losing_exchanges, may_be_answers
from diagnosis.rules.queues._shared.deletions import Deletion, node_started
from diagnosis.rules.queues._shared.queue import is_lasting, is_private
from diagnosis.series import count, delta, last, readings_since, restarted, span
from diagnosis.window import Series, Timestamped

_LATE = 6.0
"""Seconds by which a counter may be late: the broker refreshes its statistics every 5 s."""
_OVER = 45.0
"""Seconds after which a single absence is over; exchanges are read every 15 s."""
_NOISE = 0.02
"""Share of what the default exchange receives that may be missing only because its counters are read apart."""
_DENSE = 6.5
"""Seconds between two readings from which on a queue may have been away in between; it is polled every 5 s."""
_SIMILAR = 0.3
"""Least share of what an exchange lost that the counters of its publishers show."""
_PERSISTENT = 3
"""Times after which somebody needs the queue: two are a deployment with a failed start."""
_MOST = 0.5
"""Largest share of the messages that it may miss: who only looks in now and then misses more."""
_LONG = 60.0
"""Seconds away after which a consumer did not come back at once: it runs when it is wanted."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A time without a queue: from its last reading to the first one of the next queue of its name; None before it.

    Attributes:
        proven: False if the queue was perhaps new then, or if the readings are so far apart that they may miss it.
    """

    began: Instant
    ended: Instant | None
    proven: bool = True

    def overlaps(self, older: Instant, newer: Instant) -> bool:
        """Return whether something that was counted between two readings may have happened in this time."""
        return newer.mono > self.began.mono and (self.ended is None or older.mono < self.ended.mono + _LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayLoss:
    """What an exchange lost while a queue behind it was away.

    Attributes:
        queues: any of them explains the loss; as they were read last.
        times: in how many absences at least messages were lost.
        lost: messages that reached no queue in them.
        received: messages that the exchange received since.
        comes_back: whether its consumer came back soon each time and got most messages: it probably needs all of them.
        since, seconds: when the first absence began, and the time since then.
        until: when the last of them was over, at the latest; None if it is not.
        publishers: channels that lost messages only then; `published` counts what they lost recently.
    """

    exchange: Exchange
    queues: tuple[Queue, ...]
    times: int
    lost: int
    received: int
    comes_back: bool
    since: Instant
    until: Instant | None
    seconds: float
    publishers: tuple[ActivePublisher, ...]

    @property
    def repeated(self) -> bool:
        """Whether it happened more than once, which a deployment does not."""
        return self.times > 1

    @property
    def of_lasting(self) -> bool:
        """Whether the queues are made to last, so that somebody misses what they did not get."""
        return all(is_lasting(each) for each in self.queues)


def away_losses(view: View, counter: str) -> tuple[AwayLoss, ...]:
    """Return what exchanges lost while a queue was away, one for each exchange; `counter` is one of channels."""
    losing: Mapping[str, list[ActivePublisher]] = by_vhost(
        ActivePublisher(
            channel=each,
            connection=view.connection(each.connection_name),
            history=(history := view.channel_history(each.name)),
            published=increase(view, history, counter),
        )
        for each in view.channels
        if getattr(each.stats, counter)
    )
    if view.counts_losses:
        # Who loses messages is not known, only where.
        losing = {each.vhost: [] for each in losing_exchanges(view, counter) if not may_be_answers(view, each)}
    if not losing:
        return ()
    away, exchanges = per_view(view, _away), {each.key: each for each in view.exchanges}
    found = []
    for (vhost, name), queues in sorted(per_view(view, _queues_behind).items()):
        exchange = exchanges.get((vhost, name))
        if exchange is None or vhost not in losing or alternate_of(view, exchange) is not None:
            continue
        # One queue that explains all is the reason; else several together may be.
        single = [each for each in queues if _explains(view, exchange, counter, away[each][1])]
        together = tuple(each for queue in queues for each in away[queue][1])
        fitting = single or (queues if _explains(view, exchange, counter, together) else [])
        if fitting:
            times = away[fitting[0]][1] if single else together
            behind = tuple(away[each][0] for each in fitting)
            loss = _loss(view, counter, exchange, behind, times, losing[vhost])
            found += [loss] if loss is not None else []
    return tuple(found)


def _away(view: View) -> dict[tuple[str, str], tuple[Queue, tuple[Absence, ...]]]:
    """Return queues, as read last, and when they were away within the window; only those that came back."""
    found = {}
    for key in view.interrupted_queues(0):
        presence = view.presence(key)
        times = tuple(_absences(view, presence))
        if any(each.proven and each.ended is not None for each in times):
            found[key] = (next(it for _, it in reversed(presence) if it is not None), times)
    return found


def _absences(view: View, presence: Iterable[tuple[Instant, Queue | None]]) -> Iterator[Absence]:
    """Yield the times in which a queue was away or may have been, oldest first."""
    before: Timestamped[Queue] | None = None
    since: Instant | None = None
    for at, queue in presence:
        if queue is None:
            since = since or at
            continue
        if before is None:
            if since is not None:
                yield Absence(since, at, proven=False)
        else:
            # The counters of a lasting queue also begin again when its leader moves.
            again = is_private(queue) and queue.messages is not None and restarted(before.value.stats, queue.stats)
            proven = (since is not None or again) and not node_started(view, Deletion((before,), None, at, 0))
            if proven or at.since(before.at) > _DENSE:
                yield Absence(before.at, at, proven=proven)
        before, since = Timestamped(at, queue), None
    if before is not None and since is not None and not node_started(view, Deletion((before,), None, since, 0)):
        yield Absence(before.at, None)


def exchanges_to(view: View, vhost: str, queue: str) -> set[str]:
    """Return the exchanges that led to a queue by the bindings of any reading, also through others; not the default."""
    sources = per_view(view, _sources)
    found: set[str] = set()
    following = [(vhost, "queue", queue)]
    while following:
        new = sources.get(following.pop(), set()) - found
        found |= new
        following += [(vhost, "exchange", each) for each in new]
    return found


def exchanges_aside(view: View, vhost: str, queues: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Return the exchanges of a virtual host that lead to none of some of its queues, by virtual host and name.

    The default exchange leads to every queue, and one with an alternate exchange may lead anywhere. Empty if bindings
    are unknown.
    """
    if view.bindings is None:
        return frozenset()
    leading = {name for queue in queues for name in exchanges_to(view, vhost, queue)}
    own = (each for each in view.exchanges if each.vhost == vhost and each.name and each.name not in leading)
    return frozenset(each.key for each in own if alternate_of(view, each) is None)


def _sources(view: View) -> dict[tuple[str, str, str], set[str]]:
    """Return the exchanges that are bound to each destination (virtual host, type and name) at any reading."""
    found: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    # Bindings that did not change between readings are the same object.
    for bindings in {id(seen.value): seen.value for seen in view.window.readings("bindings")}.values():
        for each in bindings.listed or ():
            found[(each.vhost, each.destination_type, each.destination)].add(each.source)
    return dict(found)


def _queues_behind(view: View) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return by exchange the queues that were away; what is bound nowhere gets its messages from the default one."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for vhost, name in per_view(view, _away):
        for exchange in exchanges_to(view, vhost, name) or {""}:
            found[(vhost, exchange)].append((vhost, name))
    return found


def queues_away(view: View, exchange: Exchange) -> list[str]:
    """Return the names of the queues behind an exchange that were away within the window and came back."""
    return sorted(name for _, name in per_view(view, _queues_behind).get(exchange.key, ()) if exchange.name)


def _losing_steps(view: View, exchange: Exchange, counter: str) -> Iterator[tuple[Series[Exchange], int]]:
    """Yield the pairs of readings between which an exchange lost messages, and how many."""
    own = 0.0 if exchange.name else own_losses(view, exchange.vhost)
    for pair in pairwise(exchange_histories(view).get(exchange.key, ())):
        received = messages_in(pair)
        lost = messages_lost(pair, counter) - round(own * span(pair))
        if lost > (0 if exchange.name else max(view.thresholds.queues.loss_least, _NOISE * received)):
            yield pair, lost


def _explains(view: View, exchange: Exchange, counter: str, absences: Sequence[Absence]) -> bool:
    """Return whether an exchange lost messages in these absences, and at no other time."""
    steps = [pair for pair, _ in _losing_steps(view, exchange, counter)]
    return bool(steps) and all(_within(pair, absences) for pair in steps)


def _within(pair: Series[Any], absences: Iterable[Absence]) -> bool:
    return any(each.overlaps(pair[0].at, pair[1].at) for each in absences)


def _loss(
    view: View,
    counter: str,
    exchange: Exchange,
    queues: tuple[Queue, ...],
    absences: Sequence[Absence],
    losing: Sequence[ActivePublisher],
) -> AwayLoss | None:
    """Return what an exchange loses in absences, or None if it is over, another fault, or not of these publishers."""
    known = sorted((each for each in absences if each.proven), key=lambda each: each.began.mono)
    steps = [(pair, number) for pair, number in _losing_steps(view, exchange, counter) if _within(pair, known)]
    fitting = [each for each in known if any(each.overlaps(pair[0].at, pair[1].at) for pair, _ in steps)]
    if not fitting:
        return None
    lost, final = sum(number for _, number in steps), fitting[-1]
    received = messages_in(readings_since(exchange_histories(view)[exchange.key], steps[0][0][0].at.mono))
    # Two absences in one pair of readings may have lost messages once.
    times = min(len(fitting), len(steps))
    open_for = view.now.since(final.began) if final.ended is None else 0.0
    # What lasting queues missed is lost for good, so it is reported while the window shows it.
    for_good = counter == DROPPED and all(map(is_lasting, queues))
    if final.ended is not None and not for_good and view.now.since(final.ended) > _next_due(fitting, times):
        return None
    if final.ended is None and (times == 1 or open_for >= view.thresholds.publishers.unroutable_after):
        # It may not come back.
        return None
    publishers = [each for each in losing if was_routed(each) and _only_within(each, counter, absences)]
    seconds = view.now.since(steps[0][0][0].at)
    strangers = [each for each in losing if each.published and each not in publishers]
    others = sum(each.rate for each in strangers if not _loses_elsewhere(view, each, exchange)) * seconds
    counted = sum(count(each.channel.stats, counter) for each in publishers)
    # The counters of the exchange itself include all that it lost.
    if not view.counts_losses and (counted < _SIMILAR * lost or others > SAME_RATE * lost):
        return None
    publishers = [each for each in publishers if each.published] or publishers
    # Of several that lost messages at some time, the one whose number fits.
    same = [each for each in publishers if abs(count(each.channel.stats, counter) - lost) <= SAME_RATE * lost]
    publishers = same if len(same) == 1 else publishers
    return AwayLoss(
        exchange=exchange,
        queues=queues,
        times=times,
        lost=lost,
        received=received,
        comes_back=times >= _PERSISTENT and lost <= _MOST * received and _comes_back(view, queues, fitting),
        since=fitting[0].began,
        until=final.ended,
        seconds=view.now.since(fitting[0].began),
        publishers=tuple(publishers),
    )


def _comes_back(view: View, queues: Sequence[Queue], absences: Sequence[Absence]) -> bool:
    """Return whether queues with a consumer were away for a short time each: readings show the longest possible one."""
    consumed = all(any(each.value.consumers for each in view.listings(queue)) for queue in queues)
    return consumed and all((each.ended or view.now).since(each.began) < _LONG for each in absences)


def _next_due(absences: Sequence[Absence], times: int) -> float:
    """Return for how many seconds after an absence the next one can be expected."""
    if times < 2:
        return _OVER
    return max(_OVER, 2 * absences[-1].began.since(absences[0].began) / (len(absences) - 1))


def _loses_elsewhere(view: View, publisher: ActivePublisher, exchange: Exchange) -> bool:
    """Return whether another exchange loses as many messages a second as a channel."""
    for key, history in exchange_histories(view).items():
        if key[0] == exchange.vhost and key != exchange.key and len(history) > 1:
            recent = last(history, view.thresholds.interval)
            rate = (messages_in(recent) - messages_out(recent)) / max(span(recent), 1.0)
            if abs(rate - publisher.rate) <= SAME_RATE * publisher.rate:
                return True
    return False


def _only_within(publisher: ActivePublisher, counter: str, absences: Sequence[Absence]) -> bool:
    """Return whether a channel lost messages in these absences only, and none for a time, as far as it was read."""
    steps = list(pairwise(publisher.history))
    proven = [each for each in absences if each.proven]
    others = [pair for pair in steps if not _within(pair, proven)]
    good = any(delta(pair, counter) == 0 < delta(pair, "publish") for pair in others)
    losing = [pair for pair in steps if delta(pair, counter) > 0]
    return (good or not others) and all(_within(pair, absences) for pair in losing)


def exchanges_with_absences(view: View) -> frozenset[tuple[str, str]]:
    """Return the exchanges that lose messages only while a queue behind them is away, again and again."""
    found = (each for counter in (DROPPED, RETURNED) for each in away_losses(view, counter))
    return frozenset(each.exchange.key for each in found)
