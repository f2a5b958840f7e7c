"""Readers of a stream that subscribe again and again, and begin at the same place each time.

A stream sends from the offset that a subscription asks for. Over AMQP 0-9-1 the client keeps count itself: one that
stores no offset, and asks for the first message, is sent all that it has read before. If it ends before it reached
the end of the stream, it never reads what is new. One that asks for the newest message, which is the default, is never
sent what is published while it is away. A reader that stored its offset asks for another one each time.
Source: https://www.rabbitmq.com/docs/streams#consuming; seen on 4.3.6 and 3.10.8.
"""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Consumer, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.consumers._shared.turnover import consumers_by_reading
from diagnosis.series import count, delta, last, span, steps, stretch
from diagnosis.window import Series

_LEAST = 100
"""Messages that a reader must have been sent before it ended: a check that looks at the first ones is no reader."""
_UNSEEN = 10.0
"""Seconds at the end of a reader in which it was sent messages that no reading shows: a poll and a refresh."""
_RECENT = 30.0

_TIMES = 2.0
"""A stream that was sent so many times over to each of its readers was read again by one of them."""

_NEWEST = (None, "next")
"""Offsets of a subscription that begins with what is published after it; None is the default."""

_Start = tuple[str, str | int]
"""A client and the offset that it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRestarts:
    """A client whose readers of a stream replace each other, and ask for the same offset each time.

    Attributes:
        offset: what each asked for: `first`, an offset, or seconds since 1970.
        readers: all of them, in the order in which they were seen.
        at_once: the most in one reading.
        returns: how many came after others had ended.
        delivered: the most messages that one of the ended ones was sent, as far as that was read.
        short: True if each ended before it could reach the end of the stream; False if that is not certain.
        seconds, since: the time in which they came.
    """

    client: str
    offset: str | int
    readers: tuple[Consumer, ...]
    at_once: int
    returns: int
    delivered: int
    short: bool
    seconds: float
    since: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAgain:
    """A client that is sent a stream again and again from the same place.

    Attributes:
        offset: what it asks for: `first`, an offset, or seconds since 1970.
        times: how often the whole stream was sent to one reader.
        delivered, published: messages in that time, to all readers.
        messages: how many different ones there were, at most.
    """

    client: str
    offset: str | int
    times: float
    delivered: int
    messages: int
    published: int
    over_seconds: float


def stream_restarts(view: View, queue: Queue) -> StreamRestarts | None:
    """Return the client that began a stream at the same place most often; None if none did so again."""
    if queue.type != "stream":
        return None
    groups = per_view(view, _by_start).get(queue.key, {})
    found = (_restarts(view, queue, *key, by_reading) for key, by_reading in sorted(groups.items(), key=str))
    return max((each for each in found if each is not None), key=lambda each: each.returns, default=None)


def read_again(view: View, queue: Queue) -> ReadAgain | None:
    """Return the client that is sent a stream again and again from the same place; None if none demonstrably is.

    A subscription is sent each message once. So what is delivered beyond all messages that there are, for each reader
    that was there at once, went to readers that began again. Who they were is known of the latest reader only.
    """
    if queue.type != "stream":
        return None
    history = _counted(view.history(queue))
    published, delivered = delta(history, "publish"), delta(history, "deliver")
    messages = (history[0].value.messages or 0) + published
    at_once = max(seen.value.consumers or 0 for seen in history)
    if messages < _LEAST or not at_once or delivered < _TIMES * at_once * messages:
        return None
    known = seen_connections(view)
    readers = (each for consumers in consumers_by_reading(view, queue) for each in consumers)
    asked = [each for each in readers if _asks_for_a_message(each)]
    starts = {(client_name(known.get(each.connection_name or "")), each.stream_offset or 0) for each in asked}
    client, offset = next(iter(starts), (None, 0))
    if len(starts) != 1 or client is None:
        return None
    return ReadAgain(
        client=client,
        offset=offset,
        times=delivered / messages / at_once,
        delivered=delivered,
        messages=messages,
        published=published,
        over_seconds=span(history),
    )


def skipped_messages(view: View, queue: Queue, readers: Sequence[Consumer]) -> int | None:
    """Return how many messages were published while the only reader of a stream was away, and none of them was sent.

    None if that is not known: others read the stream, or a reader asks for another message than the newest one.
    """
    history = _counted(view.history(queue))
    alone = all((seen.value.consumers or 0) <= 1 for seen in history)
    if queue.type != "stream" or not readers or not alone or any(each.stream_offset not in _NEWEST for each in readers):
        return None
    published, sent = delta(history, "publish"), delta(history, "deliver")
    least = max(view.limits(queue).queues.loss_least, 2 * SKEW_SECONDS * published / max(span(history), 1.0))
    return published - sent if published - sent >= least else None


def _counted(history: Series[Queue]) -> Series[Queue]:
    """Return the readings since which the number of consumers is known."""
    return stretch(history, lambda older, _newer: older.value.consumers is not None)


def _by_start(view: View) -> dict[tuple[str, str], dict[_Start, list[dict[str, Consumer]]]]:
    """Return by stream, client and offset the consumers of each reading by their channels."""
    readings: Series[tuple[Consumer, ...]] = view.window.readings("consumers")
    known = seen_connections(view)
    found: dict[tuple[str, str], dict[_Start, list[dict[str, Consumer]]]] = defaultdict(dict)
    for number, seen in enumerate(readings):
        for each in seen.value:
            client = client_name(known.get(each.connection_name or "")) if _asks_for_a_message(each) else None
            if client and each.channel_name:
                start = (client, each.stream_offset or 0)
                found[each.vhost, each.queue].setdefault(start, [{} for _ in readings])[number][each.channel_name] = (
                    each
                )
    return found


def _asks_for_a_message(consumer: Consumer) -> bool:
    """Return whether it asked for a certain message, and neither for the newest ones nor for those of an interval."""
    return consumer.stream_offset == "first" or isinstance(consumer.stream_offset, int)


def _restarts(
    view: View, queue: Queue, client: str, offset: str | int, by_reading: list[dict[str, Consumer]]
) -> StreamRestarts | None:
    everyone: dict[str, Consumer] = {}
    for each in by_reading:
        everyone.update(each)
    at_once = max(map(len, by_reading))
    if len(everyone) < 2 * at_once:
        return None
    sent = per_view(view, _sent)
    delivered = max((sent.get(name, 0) for name in everyone if name not in by_reading[-1]), default=0)
    if delivered < _LEAST:
        return None
    readings = view.window.readings("consumers")
    returns, seconds, since = len(everyone) - at_once, span(readings), readings[0].at
    history = _counted(view.history(queue))
    beside = _lasting(readings, queue, everyone)
    if all((seen.value.consumers or 0) <= beside + at_once for seen in history):
        # Nobody else came or left, so each rise is one of this client's.
        counts = [seen.value.consumers or 0 for seen in history]
        rises = sum(max(0, newer - older) for older, newer in pairwise(counts))
        if rises > returns:
            returns, seconds, since = rises, span(history), history[0].at
    recent = last(history, _RECENT)
    pace = max(
        (delta(pair, "deliver") / span(pair) for pair in steps(recent, view.limits(queue).interval)), default=0.0
    )
    return StreamRestarts(
        client=client,
        offset=offset,
        readers=tuple(everyone.values()),
        at_once=at_once,
        returns=returns,
        delivered=delivered,
        short=offset == "first" and delivered + _UNSEEN * pace < (queue.messages or 0),
        seconds=seconds,
        since=since,
    )


def _lasting(readings: Series[tuple[Consumer, ...]], queue: Queue, without: Container[str]) -> int:
    """Return how many other consumers of a queue are in every reading."""
    held = [
        {(each.channel_name, each.tag) for each in seen.value if (each.vhost, each.queue) == queue.key}
        for seen in readings
    ]
    return sum(name not in without for name, _ in set.intersection(*held))


def _sent(view: View) -> dict[str, int]:
    """Return the most messages that each channel was seen to be sent, of channels that consume from one queue."""
    served: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for consumers in view.window.readings("consumers"):
        for each in consumers.value:
            served[each.channel_name or ""].add((each.vhost, each.queue))
    found: dict[str, int] = {}
    for channels in view.window.readings("channels"):
        for each in channels.value:
            if len(served[each.name]) == 1:
                found[each.name] = max(found.get(each.name, 0), count(each.stats, "deliver", "deliver_no_ack"))
    return found


def reread_facts(again: StreamRestarts | None) -> dict[str, Fact] | None:
    """Return the facts of a reader that begins at one offset each time; None without one."""
    if again is None:
        return None
    return {
        "client": again.client,
        "offset": again.offset,
        "returns": again.returns,
        "delivered": again.delivered,
        "short": again.short,
        "watched_seconds": again.seconds,
    }
