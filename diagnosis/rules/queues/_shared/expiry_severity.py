"""How bad it is that messages of a consumed queue expire, by a TTL of the queue or by an expiration of each message."""

from ackscope.findings import Severity
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.queues._shared.message_balance import MessageBalance, lasts
from diagnosis.window import Series

NO_TIME = 0.1
"""Seconds of a TTL that is no time: such a queue hands a message to a consumer at once, or drops it."""

_UNSEEN = 3
"""Messages that may have been ready beside those that readings showed: of 95 of 100 series that show none, no more."""


def is_much(view: View, queue: Queue, found: MessageBalance) -> bool:
    """Return whether a large share of what is published expires."""
    return found.lost >= view.limits(queue).queues.expiry_much_share * found.published


def expiry_severity(
    view: View, queue: Queue, run: Series[Queue], found: MessageBalance, *, lost: bool, life: float | None
) -> Severity:
    """Return how bad it is that messages expire in a queue with consumers.

    Consumers that are always busy may be slow on purpose: a cache, the latest position. If they are idle, or a message
    lives for no time at all, the time is a mistake. A TTL of 0 is none: it means "now or never".

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        run: readings in which messages kept expiring.
        found: its balance over the run.
        lost: whether what expires goes to no queue.
        life: seconds after which a message expires, at most; None if unknown.
    """
    limits, seconds = view.limits(queue).queues, lasts(view, run, found)
    soon = is_much(view, queue, found) and seconds >= limits.expiry_much_for
    mistaken = consumers_are_idle(run) or (life is not None and 0 < life <= NO_TIME)
    if soon and lost and mistaken:
        return Severity.CRITICAL
    return Severity.WARNING if soon or seconds >= limits.expiry_for else Severity.INFO


def consumers_are_idle(run: Series[Queue]) -> bool:
    """Return whether consumers hold nothing in most readings while messages expire, so that their time is too short."""
    held = [seen.value.messages_unacked for seen in run]
    return bool(run[-1].value.consumers) and 2 * held.count(0) > len(held)


def longest_life(run: Series[Queue], found: MessageBalance) -> float | None:
    """Return for how many seconds a message that expires is ready, at most; None if none was seen.

    By Little's law, it is the number of ready messages divided by the rate of those that expire. What is delivered was
    ready, too, so it is less.
    """
    ready = sum(seen.value.messages_ready or 0 for seen in run)
    return (ready + _UNSEEN) / len(run) * found.seconds / found.lost if ready and found.lost else None
