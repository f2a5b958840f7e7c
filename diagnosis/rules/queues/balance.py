"""What became of the messages of a queue: published, taken by clients, stored; the rest is gone.

Counters come from channels and the number of messages from the queue, each refreshed every 5 s at a moment of its own.
So the balance of one interval proves nothing; that of several in a row does, once it exceeds what the lag can make.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ackscope.reports import EvidenceReport
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import delta, span, steps
from diagnosis.window import Series
from diagnosis.words import amount, lasting

TAKEN = ("ack", "deliver_no_ack", "get_no_ack")
"""Messages that left a queue for good, into a client's hands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """One queue over some time.

    Attributes:
        taken: acknowledged, or handed out without need of it.
        stored: how many more messages it holds now.
        given_back: handed out, and neither acknowledged nor held since: rejected or requeued.
    """

    published: int
    taken: int
    stored: int
    given_back: int
    seconds: float

    @property
    def missing(self) -> int:
        """Published, and neither taken nor stored; negative where messages came that nobody published to it."""
        return self.published - self.taken - self.stored

    @property
    def lost(self) -> int:
        """At least so many vanished that no consumer had rejected."""
        return max(0, self.missing - self.given_back)


def balance(series: Series[Queue]) -> Balance | None:
    """The balance over a series; None where a number of messages is not known."""
    if not series:
        return None
    first, final = series[0].value, series[-1].value
    if None in (first.messages, final.messages, first.messages_unacked, final.messages_unacked):
        return None
    held = (final.messages_unacked or 0) - (first.messages_unacked or 0)
    return Balance(
        published=delta(series, "publish"),
        taken=delta(series, *TAKEN),
        stored=(final.messages or 0) - (first.messages or 0),
        given_back=max(0, delta(series, "deliver", "get") - delta(series, "ack") - held),
        seconds=span(series),
    )


def all_along(history: Series[Queue], interval: float, holds: Callable[[Series[Queue]], bool]) -> Series[Queue]:
    """The time until now in each interval of which something holds; empty where it does not hold in the latest."""
    start = len(history)
    for pair in reversed(steps(history, interval)):
        if not holds(pair):
            break
        start = history.index(pair[0])
    # What is left before may be shorter than an interval, and counts where it shows the same.
    if 0 < start < len(history) and holds(history[start - 1 : start + 1]):
        start -= 1
    return history[start:]


def losing(
    view: View, queue: Queue, meanwhile: Callable[[Queue], bool] = lambda _: True
) -> tuple[Series[Queue], Balance] | None:
    """The time until now in which a queue lost messages all along, and its balance; None where it did not.

    Args:
        view: the one look that is being judged.
        queue: as it is now.
        meanwhile: what must be true of the queue at each moment of that time.
    """
    limits = view.limits(queue)

    def loses(pair: Series[Queue]) -> bool:
        step = balance(pair)
        vanished = step is not None and step.lost > limits.queues.loss_share * step.published
        return vanished and all(meanwhile(seen.value) for seen in pair)

    lately = all_along(view.history(queue), limits.interval, loses)
    whole = balance(lately)
    if whole is None or whole.seconds < limits.early:
        return None
    lag = limits.queues.loss_skew * whole.published / whole.seconds
    proof = max(limits.queues.loss_least, lag, limits.queues.loss_share * whole.published)
    return (lately, whole) if whole.lost >= proof else None


def evidence(found: Balance) -> list[EvidenceReport]:
    """The balance, line by line."""
    seconds = lasting(found.seconds)
    return [
        EvidenceReport(
            what="published to it",
            value=f"{amount(found.published, 'message')} in {seconds}",
            source="/api/queues message_stats.publish",
        ),
        EvidenceReport(
            what="taken by clients",
            value=f"{amount(found.taken, 'message')} in {seconds}",
            expected="as many as were published",
            source="/api/queues message_stats.ack, deliver_no_ack, get_no_ack",
        ),
        EvidenceReport(
            what="gone otherwise",
            value=f"at least {amount(found.lost, 'message')}: neither taken, nor rejected, nor stored",
            expected="0",
            source="/api/queues message_stats, messages",
        ),
    ]
