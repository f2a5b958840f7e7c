"""Balance of a queue's messages: published minus consumed minus stored is lost.

Counters come from channels and the number of messages from the queue. Each is refreshed every 5 s at its own time, so
the balance of one interval proves nothing. Several consecutive intervals do, if the balance exceeds what this delay can
explain.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ackscope.findings import Evidence, Facts, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.ledger import (
    Ledger,
    from_its_beginning,
    ledger,
    levels,
    losing,
    may_have_lost,
    may_settle_unseen,
    most_uncounted,
)
from diagnosis.purpose import CONSUMED
from diagnosis.rules.publishers._shared.overflow import since_it_drops
from diagnosis.series import delta, span, steps, stretch
from diagnosis.window import Series

_TIMES, _AT_ONCE = 3, 0.5
"""Steps of the time in which messages must have left, and share of all that may have left in one, if they expire."""

_SURE = 0.75
"""Share of a duration that counters imply to rely on: the loss that is proven within it is a lower bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBalance:
    """The message balance of one queue over a period.

    Attributes:
        consumed: messages acknowledged, or delivered with automatic acknowledgement.
        stored: increase of the messages in the queue.
        rejected: messages delivered and then rejected or requeued: neither acknowledged nor unacknowledged at the end.
        seconds: length of the period.
    """

    published: int
    consumed: int
    stored: int
    rejected: int
    seconds: float

    @property
    def missing(self) -> int:
        """Messages published but neither consumed nor stored; negative if messages arrived without a publish."""
        return self.published - self.consumed - self.stored

    @property
    def lost(self) -> int:
        """Minimum of messages that disappeared without being rejected by a consumer."""
        return max(0, self.missing - self.rejected)


def balance(series: Series[Queue]) -> MessageBalance | None:
    """Return the balance over a series; None if a number of messages is unknown."""
    if not series:
        return None
    first, final = levels(series[0].value), levels(series[-1].value)
    if first is None or final is None:
        return None
    unacked = final.unacked - first.unacked
    return MessageBalance(
        published=delta(series, "publish"),
        consumed=delta(series, *CONSUMED),
        # A queue that was just declared has no lengths yet and is empty.
        stored=(series[-1].value.messages or 0) - (series[0].value.messages or 0),
        rejected=max(0, delta(series, "deliver", "get") - delta(series, "ack") - unacked),
        seconds=span(series),
    )


def latest_run(history: Series[Queue], interval: float, holds: Callable[[Series[Queue]], bool]) -> Series[Queue]:
    """Return the latest stretch in which `holds` is true for each interval; empty if it is false for the latest."""
    start = len(history)
    for pair in reversed(steps(history, interval)):
        if not holds(pair):
            break
        start = history.index(pair[0])
    # The remainder before may be shorter than an interval, and counts if `holds` is true for it.
    if 0 < start < len(history) and holds(history[start - 1 : start + 1]):
        start -= 1
    return history[start:]


def losing_run(
    view: View, queue: Queue, meanwhile: Callable[[Queue], bool] = lambda _: True
) -> tuple[Series[Queue], MessageBalance] | None:
    """Return the readings between which a queue lost messages before delivery, and their balance; None if it lost none.

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        meanwhile: condition on the queue; only its latest readings at which it holds, and the one before, are judged.
    """
    limits = view.limits(queue).queues
    if not may_have_lost(view, queue) or may_settle_unseen(view, queue):
        return None
    # Before it holds, counters that are ahead of the length look like a loss.
    history = since_it_drops(view, from_its_beginning(view, queue))
    history = stretch(history, lambda _, newer: meanwhile(newer.value))
    found = proven_loss(view, queue, history)
    if found is None:
        return None
    run = losing(history, lambda each: each.vanished, found.vanished)
    whole = balance(run)
    if whole is None or whole.lost < limits.loss_least:
        return None
    return (run, whole)


def proven_loss(view: View, queue: Queue, history: Series[Queue], purged: int = 0) -> Ledger | None:
    """Return the balance of some readings of a queue if it proves that messages were lost before delivery.

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        history: the readings.
        purged: messages that were purged meanwhile, which is no loss.
    """
    limits = view.limits(queue).queues
    found = ledger(history, skew=limits.loss_skew, most=most_uncounted(view, queue))
    if found is None or found.proven_vanished - purged < max(limits.loss_least, limits.loss_share * found.arrived):
        return None
    return found


def leaves_in_steps(view: View, queue: Queue, run: Series[Queue], least: float = 0.0) -> bool:
    """Return whether messages left a queue again and again, as they expire; a purge takes all at once.

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        run: readings between which messages left before delivery.
        least: the share of the steps between these readings in which some must have left.
    """
    known = [found for pair in steps(run, view.limits(queue).interval) if (found := balance(pair)) is not None]
    lost = [each.lost for each in known if each.lost]
    return len(lost) >= max(_TIMES, least * len(known)) and max(lost) <= _AT_ONCE * sum(lost)


def lasts(view: View, run: Series[Queue], found: MessageBalance) -> float:
    """Return for how many seconds at least a queue has lost messages before delivery.

    As observed, or for as long as its present loss explains what it has lost since its counters began, but not longer
    than it exists.
    """
    now = levels(run[-1].value)
    if now is None or found.lost <= 0 or not found.seconds:
        return span(run)
    exists = view.longest_life(run[-1].value)
    return max(span(run), min(exists, _SURE * now.vanished * found.seconds / found.lost))


def balance_facts(found: MessageBalance) -> Facts:
    """Return the balance as facts.

    Returns:
        `{"lost", "published", "consumed", "over_seconds", "publish_rate", "consume_rate"}`.
    """
    return {
        "lost": found.lost,
        "published": found.published,
        "consumed": found.consumed,
        "over_seconds": found.seconds,
        "publish_rate": found.published / found.seconds,
        "consume_rate": found.consumed / found.seconds,
    }


def balance_evidence(found: MessageBalance) -> list[Evidence]:
    """Return the balance as evidence; its texts are shared."""
    over = {"over_seconds": found.seconds}
    counters = source("/api/queues", "message_stats.ack", "message_stats.deliver_no_ack", "message_stats.get_no_ack")
    return [
        Evidence(
            key="balance_published",
            value=found.published,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.publish"),
            facts=over,
        ),
        Evidence(key="balance_consumed", value=found.consumed, unit=Unit.MESSAGES, source=counters, facts=over),
        Evidence(
            key="balance_lost",
            value=found.lost,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats", "messages"),
        ),
    ]
