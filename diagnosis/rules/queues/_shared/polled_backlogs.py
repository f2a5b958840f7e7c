"""Queues that clients poll (basic.get) more slowly than messages arrive.

A job that empties its queue every few minutes leaves messages ready in between. So only low points are compared: what
is ready at the first reading after each poll. And a poll that took as many messages as were ready before may have
emptied the queue, whatever has arrived since.
"""

from itertools import pairwise

from ackscope.snapshot import Channel, Queue
from diagnosis.contract import View
from diagnosis.purpose import CONSUMED, POLLED
from diagnosis.rules.consumers._shared.pollers import is_polled_in_time, polling_channels
from diagnosis.rules.queues._shared.message_balance import latest_run
from diagnosis.series import delta, readings_since, span
from diagnosis.window import Series, Timestamped

_DELIVERED = ("deliver", "deliver_no_ack")
_LEAST_SECONDS, _LEAST_LOWS = 60.0, 3
"""Seconds and low points for which a queue must grow: a job that begins to poll is behind for a short time."""
_RETURNED = 0.5
"""Share of the polled messages that came back from which on a client looks at messages and takes none."""
_FEW = 0.1
"""Share of the arrivals below which nobody works at a queue: a person looks at some messages."""


def polled_backlog(view: View, queue: Queue) -> Series[Queue]:
    """Return the low points of a queue that is polled and becomes longer all the same; empty if it is not."""
    history = view.history(queue)
    if view.links(queue) or not any(getattr(queue.stats, each) for each in POLLED) or not is_polled_in_time(history):
        return ()
    share = view.limits(queue).queues.overload_share

    def grows(pair: Series[Queue]) -> bool:
        return _ready(pair[-1]) - _ready(pair[0]) > max(0.0, share * delta(pair, "publish"))

    lows = _low_points(history)
    # A reading comes at any time between two polls, so one step has two of these pauses.
    pause = min((newer.at.since(older.at) for older, newer in pairwise(lows)), default=0.0)
    lows = latest_run(lows, max(view.limits(queue).interval, 2 * pause), grows)
    if len(lows) < _LEAST_LOWS or span(lows) < _LEAST_SECONDS:
        return ()
    run = readings_since(history, lows[0].at.mono)
    polled = delta(run, *POLLED)
    looked_at = delta(run, "redeliver") > _RETURNED * polled or polled < _FEW * delta(run, "publish")
    return () if looked_at or delta(run, *_DELIVERED) or not delta(run, *CONSUMED) else lows


def poller(view: View, queue: Queue) -> tuple[Channel, ...]:
    """Return the channels of the client that polls a queue; empty if it is brief, or several may do so."""
    return next((found for each in POLLED if (found := polling_channels(view, queue, each))), ())


def _low_points(history: Series[Queue]) -> Series[Queue]:
    """Return the readings after a poll, since a poll may have emptied the queue."""
    lows: list[Timestamped[Queue]] = []
    for pair in pairwise(history):
        polled = delta(pair, *POLLED)
        if delta(pair, "get_empty") or polled >= max(1, _ready(pair[0])):
            lows = []
        elif polled:
            lows.append(pair[-1])
    return tuple(lows)


def _ready(seen: Timestamped[Queue]) -> int:
    return seen.value.messages_ready or 0
