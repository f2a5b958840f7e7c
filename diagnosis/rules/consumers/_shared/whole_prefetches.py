"""The law of a batch that its prefetch limits: acknowledgements of the whole prefetch at once, and none in between.

A client that wants more messages for a batch than its prefetch allows gets no more until it acknowledges. So it holds
its full prefetch until a timer ends the batch, however many messages wait. One that handles each message by itself also
acknowledges other numbers. The law does not distinguish a batch that is exactly as large as the prefetch.
"""

from itertools import pairwise
from typing import NamedTuple

from ackscope.snapshot import Queue
from diagnosis.rules.consumers._shared.standstill import ready
from diagnosis.series import delta, stretch
from diagnosis.window import Series

_LEAST_SIZE = 10
"""Least prefetch that is judged: a client that handles a few messages in parallel ends them at once, too."""
_LEAST_LUMPS, _LEAST_QUIET = 2, 2
"""Least readings with such acknowledgements, and least ones without any, while messages are published."""


class WholePrefetches(NamedTuple):
    """Acknowledgements of whole prefetches.

    Attributes:
        size: messages that a consumer acknowledges at once; its prefetch.
        seconds: mean time from one such acknowledgement of a consumer to its next.
    """

    size: int
    seconds: float


def whole_prefetches(history: Series[Queue], prefetch: int, consumers: int) -> WholePrefetches | None:
    """Return how consumers acknowledge whole prefetches while messages wait; None if they do not, or not only.

    Args:
        history: readings of a queue whose consumers are at capacity.
        prefetch: of each of its consumers.
        consumers: how many they are.
    """
    if prefetch < _LEAST_SIZE:
        return None
    waiting = stretch(history, lambda older, _newer: ready(older.value) > 0)
    # Two polls may read the same counters. While messages are published, those that moved were refreshed.
    pairs = [pair for pair in pairwise(waiting) if delta(pair, "publish") > 0]
    lumps = [pair for pair in pairs if delta(pair, "ack") > 0]
    if len(lumps) < _LEAST_LUMPS or len(pairs) - len(lumps) < _LEAST_QUIET:
        return None
    if any(delta(pair, "ack") % prefetch for pair in lumps):
        return None
    first, last = lumps[0][-1], lumps[-1][-1]
    number = delta((first, last), "ack") / prefetch
    return WholePrefetches(prefetch, consumers * last.at.since(first.at) / number)
