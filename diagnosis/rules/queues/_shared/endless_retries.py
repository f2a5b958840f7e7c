"""Retries through delay queues that end for no message: what waits for its next try becomes more and more.

Each message that fails for good stays in the circle, so their number grows for as long as such messages come. If
retries end after N tries, it grows for N rounds at most, and stays at what fails in that time. So growth at an
unchanged load over more rounds than a retry usually has is a retry without an end. Whether the rest is acknowledged
says nothing: a message that is given up is acknowledged, too.
"""

from dataclasses import dataclass
from math import inf, sqrt

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.purpose import was_consumed
from diagnosis.routes import Place
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.series import delta, nearest, span
from diagnosis.window import Series

_LEAST, _DEVIATIONS = 10, 4.0
"""Messages, and standard deviations of their number, by which what waits must have grown."""
_SHARE = 0.05
"""Share by which it must have grown in the later half."""
_BEYOND_LOAD = 3.0
"""Factor by which its growth must exceed that of the load: what fails may be another share of it now."""
_EACH_HALF = 0.25
"""Share of the growth that each half of the time must have."""


@dataclass(frozen=True, slots=True)
class EndlessRetries:
    """Messages that come back to a queue again and again, and become more.

    Attributes:
        run: readings of the queue while they became more.
        delays: names of the delay queues in which they wait.
        first, waiting: how many waited there at the beginning and at the end.
        rounds: how many times a message came back in that time, at least.
    """

    run: Series[Queue]
    delays: tuple[str, ...]
    first: int
    waiting: int
    rounds: float

    @property
    def seconds(self) -> float:
        """Seconds for which they have become more."""
        return span(self.run)

    @property
    def round_seconds(self) -> float:
        """Seconds that one round takes, at most."""
        return self.seconds / self.rounds


def endless_retries(view: View, queue: Queue, path: tuple[Place, ...]) -> EndlessRetries | None:
    """Return the retries of a queue if ever more messages wait for one; None if they do not become more.

    `path` is the way of its dead letters back to it, which begins with the queue.
    """
    delays = [view.queue(*place) for place in path[1:]]
    if not delays:
        return None
    waits: list[Series[Queue]] = []
    for delay in delays:
        if delay is None or delay.consumers != 0 or was_consumed(delay):
            return None
        # What clients publish to it is a schedule, and grows with their plans.
        if delta(view.history(delay), "publish"):
            return None
        waits.append(view.history(delay))
    begin = max(each[0].at.mono for each in waits)
    history = tuple(seen for seen in view.history(queue) if seen.at.mono >= begin)
    stocks = [sum(nearest(each, seen.at).value.messages or 0 for each in waits) for seen in history]
    start = max((at for at, stock in enumerate(stocks) if stock == min(stocks)), default=0)
    run, stocks = history[start:], stocks[start:]
    if len(run) < 3 or not _grows(run, stocks):
        return None
    rounds = _rounds(run, stocks, [delay for delay in delays if delay is not None])
    return EndlessRetries(run, tuple(name for _, name in path[1:]), stocks[0], stocks[-1], rounds) if rounds else None


def _grows(run: Series[Queue], stocks: list[int]) -> bool:
    """Return whether what waits grew in both halves of a time, and more than the load."""
    half = run[0].at.mono + span(run) / 2
    middle = min(range(1, len(run) - 1), key=lambda at: abs(run[at].at.mono - half))
    gained, early = stocks[-1] - stocks[0], stocks[middle] - stocks[0]
    if gained < max(_LEAST, _DEVIATIONS * sqrt(stocks[0])):
        return False
    if min(early, gained - early) < _EACH_HALF * gained:
        return False
    before, after = (delta(part, "publish") / span(part) for part in (run[: middle + 1], run[middle:]))
    rose = after / before - 1 if before else inf
    return gained - early >= (_SHARE + _BEYOND_LOAD * max(0.0, rose)) * stocks[middle] and rose < inf


def _rounds(run: Series[Queue], stocks: list[int], delays: list[Queue]) -> float:
    """Return how many times a message came back, at least: by what was rejected, and by the TTL of the delay."""
    whole = balance(run)
    if whole is None:
        return 0.0
    mean = sum(stocks) / len(stocks) + sum(seen.value.messages or 0 for seen in run) / len(run)
    times = [delay.setting("message-ttl") for delay in delays]
    waited = sum(each / 1000 for each in times if isinstance(each, int))
    if waited and None not in times:
        return min(whole.rejected / mean, span(run) / waited)
    # A dead letter that came back may count as redelivered, and so does what a consumer requeued.
    return max(0, whole.rejected - delta(run, "redeliver")) / mean
