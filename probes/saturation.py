"""Evaluates a sweep over prefetch values: finds the saturation point and recommends a prefetch.

A consumer that works on one message at a time is never idle if the next message has arrived when it acks the current
one: prefetch >= round trip / processing time + 1.
Source: https://www.rabbitmq.com/blog/2012/05/11/some-queuing-theory-throughput-latency-and-bandwidth
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from probes.self_error import duration

ENOUGH = 0.95
"""The saturation point is the smallest prefetch that reaches this share of the best result."""

SAFETY = 1.5
"""Safety factor on the formula, because round trips and processing times fluctuate."""

_WITHOUT_LIMIT = (
    "only the unlimited consumer came within 5 % of the best, but it can hold the whole queue; recommended is "
    "the largest limit that was measured"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """The measurement of one prefetch value.

    Attributes:
        prefetch: 0 for unlimited.
        messages: processed messages.
        seconds: duration of the measurement.
        busy: share of that time during which the consumer worked.
        unacked_p50, unacked_max: number of unacked deliveries, sampled whenever the consumer finished one.
        wait_p50, wait_p99: seconds from delivery until work on it began.
        work: average measured seconds of work per message.
    """

    prefetch: int
    messages: int
    seconds: float
    busy: float
    unacked_p50: float | None
    unacked_max: float | None
    wait_p50: float | None
    wait_p99: float | None
    work: float

    @property
    def throughput(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchAdvice:
    """The recommendation from a sweep.

    Attributes:
        knee: the measured saturation point; None if nothing was processed.
        formula: round trip / processing time + 1, rounded up; None without processing time.
        recommended: the value to set; None without a recommendation.
        because: the reason as a sentence.
    """

    knee: int | None
    formula: int | None
    recommended: int | None
    because: str


def saturation_point(points: Sequence[SweepPoint], processing: float) -> int | None:
    """Return the smallest prefetch whose result is close to the best; 0 for unlimited; None without messages.

    Results are compared by the busy share. Unlike throughput it does not drop if the machine is slow for a while.
    If the work takes no time, throughput decides.
    """
    scores = {point.prefetch: point.busy if processing else point.throughput for point in points if point.messages}
    if not scores:
        return None
    best = max(scores.values())
    good = [value for value, score in scores.items() if score >= ENOUGH * best]
    return min(good, key=lambda value: value or math.inf)


def advise(points: Sequence[SweepPoint], round_trip: float, processing: float) -> PrefetchAdvice:
    """Recommend a prefetch, with the reason. Times are in seconds."""
    measured = saturation_point(points, processing)
    if measured is None:
        return PrefetchAdvice(knee=None, formula=None, recommended=None, because="nothing was processed")
    limited = max((point.prefetch for point in points), default=0) or None
    if not processing:
        because = f"work takes no time here, so only the measurement counts: more than {measured} gained less than 5 %"
        if not measured:
            because = _WITHOUT_LIMIT
        return PrefetchAdvice(knee=measured, formula=None, recommended=measured or limited, because=because)
    formula = math.ceil(round_trip / processing + 1.0)
    padded = math.ceil(SAFETY * formula)
    because = (
        f"a round trip of {duration(round_trip)} / {duration(processing)} of work + 1 = {formula} messages keep "
        f"the consumer busy; plus 50 % for fluctuation: {padded}"
    )
    if not measured:
        return PrefetchAdvice(knee=0, formula=formula, recommended=limited, because=f"{because}; but {_WITHOUT_LIMIT}")
    if measured > padded:
        because += f"; in the measurement it took {measured} to come within 5 % of the best"
    return PrefetchAdvice(knee=measured, formula=formula, recommended=max(padded, measured), because=because)
