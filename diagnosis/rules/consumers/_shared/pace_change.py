"""What changed before a queue began to grow: the pace of its consumers, their number, or the load.

What consumers acknowledged once, they could do: if they do less now while they are at capacity, they became slower. By
Little's law, the messages that they held are the time that one took, at most: they may wait inside the client.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from ackscope.findings import Facts
from ackscope.snapshot import Queue
from diagnosis.series import delta, span
from diagnosis.window import Series

_LEAST_SECONDS, _LEAST_ACKED = 30.0, 20
"""A time before that is compared has at least this length and so many acknowledgements."""

_DEVIATIONS = 2.0
"""Standard deviations by which a count of messages that come at random may be off."""
_NONE_SEEN = 3.0
"""Messages in all readings together that may have been held although each reading had none (95 %)."""

_SLOWER = 1.1
"""A pace that is lower by this factor, after what chance explains, is another one."""
_LONGER = 3.0
"""Factor by which the time that one message takes must have become longer, where the rates do not tell."""
_ROSE = 1.25
"""A load that is higher by this factor, after what chance explains, is another one."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What consumers do now, while they are at capacity.

    Attributes:
        consumers: how many get messages.
        ack_rate: what they acknowledge a second, in total.
        publish_rate: what is published a second.
        seconds: over which the rates are taken.
    """

    consumers: int
    ack_rate: float
    publish_rate: float
    seconds: float


def pace_change(now: Pace, before: Series[Queue], until: str, *, only_one: bool) -> Facts | None:
    """Return what changed, as facts; None if nothing did, or if the time before is not known.

    Args:
        now: the pace of now.
        before: the readings before the queue began to grow.
        until: the latest moment at which the consumers were not at capacity, ISO 8601.
        only_one: whether only one consumer at a time gets messages.

    Returns:
        `until`; of that time `consumers` (None if the broker's samples do not tell), `ack_rate`, `publish_rate` and
        `seconds_per_message` (what one message can have taken then, at most). Whether the handler became `slower` (None
        if consumers may have left instead), consumers left (`fewer`), and the load `rose`.
    """
    best = max(_parts(before), key=_surely, default=None)
    if best is None:
        return None
    seconds, acked, published = span(best), delta(best, "ack"), delta(best, "publish")
    consumers = 1 if only_one else max((it.value.consumers for it in best if it.value.consumers), default=None)
    serial, held = (consumers or now.consumers) * seconds / acked, min(map(_held, _parts(before)))
    less = _surely(best) >= _SLOWER * now.ack_rate
    each_less = consumers is not None and _surely(best) / consumers >= _SLOWER * now.ack_rate / now.consumers
    slower: bool | None = (less and each_less) or now.consumers / now.ack_rate >= _LONGER * held
    if less and consumers is None and not slower:
        slower = None
    fewer = less and consumers is not None and consumers > now.consumers
    load, most = now.publish_rate * now.seconds, published + _DEVIATIONS * sqrt(published)
    rose = (load - _DEVIATIONS * sqrt(load)) / now.seconds >= _ROSE * most / seconds
    if slower is False and not fewer and not rose:
        return None
    return {
        "until": until,
        "consumers": consumers,
        "ack_rate": acked / seconds,
        "publish_rate": published / seconds,
        "seconds_per_message": min(serial, held),
        "slower": slower,
        "fewer": fewer,
        "rose": rose,
    }


def _parts(series: Series[Queue]) -> Iterator[Series[Queue]]:
    """Return the parts of some readings that are long enough to compare with."""
    for start in range(len(series)):
        for end in range(start + 2, len(series) + 1):
            part = series[start:end]
            if span(part) >= _LEAST_SECONDS and delta(part, "ack") >= _LEAST_ACKED:
                yield part


def _surely(part: Series[Queue]) -> float:
    """Return what was acknowledged a second, without what chance explains."""
    acked = delta(part, "ack")
    return (acked - _DEVIATIONS * sqrt(acked)) / span(part)


def _held(part: Series[Queue]) -> float:
    """Return how many seconds one message was held, at most, by what the readings saw."""
    held = [it.value.messages_unacked or 0 for it in part]
    total = sum(held)
    return (total + _DEVIATIONS * sqrt(total) + _NONE_SEEN) / len(held) * span(part) / delta(part, "ack")
