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


def oldest(lower: float | None, upper: float | None) -> str | None:
    """The age of the oldest message: `12 to 17 s`, `at least 12 s`; None if there is none or it is unknown."""
    if lower is None or math.isnan(lower):
        return None
    if upper is None or math.isnan(upper):
        return f"at least {_whole(lower)}"
    return fmt.between(lower, upper, _whole)


def empties(seconds: float | None) -> str | None:
    """The time to empty; None if the queue does not drain."""
    return None if seconds is None or math.isnan(seconds) else _whole(seconds)


def reasons(codes: Iterable[str]) -> str:
    """Why a bound is unknown; "" if it is known."""
    return "; ".join(_REASONS.get(code, code) for code in codes)


def _whole(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 119.5 else fmt.duration(seconds)
