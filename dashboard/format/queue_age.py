"""The age of a queue as text: its oldest message, when it will be empty, and why a bound is unknown."""

import math
from collections.abc import Iterable, Mapping

from ackscope import format as fmt
from diagnosis import queue_age

_REASONS: Mapping[str, str] = {
    queue_age.STREAM: "messages of a stream stay after they were consumed",
    queue_age.NO_STATISTICS: "the broker reports no message counts",
    queue_age.REFUSED: "the broker counts messages that the queue refused at its limit as published",
    queue_age.PRIORITIES: "the queue has priorities, so an older message may be left",
    queue_age.REDELIVERED: "messages were redelivered, so an older one may be left",
    queue_age.EXPIRED: "messages expired recently",
    queue_age.FIRST_MINUTES: "it was there before ackscope saw the queue first",
    queue_age.RESTARTED: "the counters of the broker restarted",
}
_IN_TRANSIT = 10.0
"""Seconds that a message may be on its way through a queue that keeps up."""


def oldest(lower: float | None, upper: float | None) -> str | None:
    """The age of the oldest message: `12 to 17 s`, `at least 12 s`; None if there is none or it is unknown."""
    if lower is None or math.isnan(lower):
        return None
    if upper is None or math.isnan(upper):
        return f"at least {_whole(lower)}"
    return fmt.between(lower, upper, _whole)


def oldest_words(lower: float | None, upper: float | None, waiting: float | None) -> str:
    """`oldest`, or `none` without messages; a dash if it is unknown. `waiting`: ready and unacked messages."""
    return oldest(lower, upper) or ("none" if waiting == 0 else fmt.ABSENT)


def empties_words(
    seconds: float | None, waiting: float | None, published: float | None, acked: float | None = None
) -> str:
    """The time to empty, `empty`, `keeps up`, or `does not drain`; a dash if it is unknown.

    Args:
        seconds: until the queue is empty at the present rate; None or NaN if it does not drain, or if that is unknown.
        waiting: ready and unacked messages.
        published: messages per second; NaN if the rates of the queue are unknown.
        acked: messages per second. If these are as many in some seconds as are in the queue, those in it are on their
            way, and new ones take their place.
    """
    if waiting == 0:
        return "empty"
    if seconds is not None and not math.isnan(seconds):
        return _whole(seconds)
    if waiting is not None and acked is not None and waiting <= acked * _IN_TRANSIT:
        return "keeps up"
    return "does not drain" if published is not None and published >= 0 else fmt.ABSENT


def reasons(codes: Iterable[str]) -> str:
    """Why a bound is unknown; "" if it is known."""
    return "; ".join(_REASONS.get(code, code) for code in codes)


def _whole(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 119.5 else fmt.duration(seconds)
