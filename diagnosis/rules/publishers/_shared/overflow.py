"""Queues at their length limit that refuse what is published to them, and how many messages they refused.

The broker does not count nacks. The balance of a queue shows them: published, and neither stored nor taken.
"""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.ledger import ledger
from diagnosis.memo import per_view
from diagnosis.purpose import CONSUMED
from diagnosis.series import count, delta, last, stretch
from diagnosis.window import Series

_NOISE = 0.05
"""Share of the published messages below which a difference is noise."""


def has_length_limit(queue: Queue) -> bool:
    """Return whether a queue has a limit on its messages or their size."""
    return queue.setting("max-length") is not None or queue.setting("max-length-bytes") is not None


def refuses_when_full(queue: Queue) -> bool:
    """Return whether a queue refuses publishes at its limit instead of dropping its oldest messages.

    Quorum queues do not support `reject-publish-dlx`: they fall back to `drop-head`.
    Source: https://www.rabbitmq.com/docs/quorum-queues#feature-matrix
    """
    overflow = queue.setting("overflow")
    return overflow == "reject-publish" or (overflow == "reject-publish-dlx" and queue.type != "quorum")


def since_it_drops(view: View, history: Series[Queue]) -> Series[Queue]:
    """Return the latest readings of a queue, without those up to when its overflow was changed from refusing.

    What it refused was counted as published, and nacked: that is no loss. Samples of the broker have the settings of
    now. So where a publisher of the virtual host was nacked, the readings before channels were read prove nothing.
    """
    history = stretch(
        history, lambda older, newer: refuses_when_full(newer.value) or not refuses_when_full(older.value)
    )
    first = view.channels_before
    if not history or first is None or history[0].at.since(first) >= 0 or refuses_when_full(history[-1].value):
        return history
    if history[-1].value.vhost not in per_view(view, _vhosts_with_nacks):
        return history
    return tuple(seen for seen in history if seen.at.since(first) >= 0)


def _vhosts_with_nacks(view: View) -> frozenset[str | None]:
    """Return the virtual hosts in which a publish of an open channel was nacked, as far as its counters tell."""
    found = set()
    for channel in view.channels:
        published, confirmed = count(channel.stats, "publish"), count(channel.stats, "confirm")
        unsettled = [seen.value.messages_unconfirmed or 0 for seen in view.channel_history(channel.name)]
        if channel.confirm and published - confirmed - max(unsettled, default=0) >= max(2.0, _NOISE * published):
            found.add(channel.vhost)
    return frozenset(found)


def at_least_once(queue: Queue) -> bool:
    """Return whether a queue keeps its dead letters until their target has them.

    Source: https://www.rabbitmq.com/docs/quorum-queues#activating-at-least-once-dead-lettering
    """
    if queue.type != "quorum" or not isinstance(queue.setting("dead-letter-exchange"), str):
        return False
    strategy = queue.setting("dead-letter-strategy") == "at-least-once"
    return bool(queue.messages_dlx) or (strategy and queue.setting("overflow") == "reject-publish")


def held_dead_letters(queue: Queue) -> int:
    """Return the dead letters that a queue keeps: neither ready nor unacknowledged, and still in the queue."""
    if not at_least_once(queue):
        return 0
    if queue.messages_dlx is not None:
        return queue.messages_dlx
    return max(0, (queue.messages or 0) - (queue.messages_ready or 0) - (queue.messages_unacked or 0))


def level(queue: Queue) -> float:
    """Return how full a queue is: 1 if the next message is refused; 0 without a limit or a count.

    Ready messages count, and dead letters that the queue keeps. Source: https://www.rabbitmq.com/docs/maxlength
    """
    levels = [0.0]
    messages, size = queue.messages_ready, queue.message_bytes_ready
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    if isinstance(length, int) and messages is not None:
        levels.append((messages + held_dead_letters(queue)) / length if length > 0 else 1.0)
    if isinstance(space, int) and size is not None:
        # The message that no longer fits is refused: add one of average size.
        average = size / messages if messages else 0.0
        levels.append((size + (queue.message_bytes_dlx or 0) + average) / space if space > 0 else 1.0)
    return max(levels)


def full_readings(view: View, queue: Queue) -> Series[Queue]:
    """Return the latest readings of a queue that refuses publishes at its limit, and is full; else empty."""
    if not refuses_when_full(queue):
        return ()
    recent = last(view.history(queue), view.thresholds.interval)
    levels = [level(seen.value) for seen in recent]
    if len(recent) < 2 or min(levels[-2:]) < view.limits(queue).publishers.overflow_relief:
        return ()
    return recent if max(levels) >= 1.0 or _refuses_between(view, queue) else ()


def _refuses_between(view: View, queue: Queue) -> bool:
    """Return whether a queue near its limit refused messages, although each reading has room for one more.

    Its consumers take a message now and then, and the next publish fills it again. Its balance since it is near the
    limit shows what it refused.
    """
    limits = view.limits(queue)
    near = stretch(view.history(queue), lambda _, newer: level(newer.value) >= limits.publishers.overflow_relief)
    # Of a new queue, the broker reports no length at first.
    near = tuple(seen for seen in near if seen.value.messages is not None)
    found = ledger(near, skew=limits.queues.loss_skew)
    return found is not None and found.proven_vanished >= limits.queues.loss_least and (refused(near) or 0) > 0


def refused(recent: Series[Queue]) -> int | None:
    """Return the messages published to the queue that it neither holds nor delivered; None if unknown.

    What consumers rejected without requeue left the queue, too. Counters are current but `messages` is up to 5 s old,
    so a few messages are noise for a queue at its limit.
    """
    first, final = recent[0].value, recent[-1].value
    if final.setting("message-ttl") is not None or first.messages is None or final.messages is None:
        return None
    published = delta(recent, "publish")
    gone = delta(recent, *CONSUMED) + _rejected(recent)
    found = published - gone - (final.messages - first.messages)
    return found if found >= max(2.0, _NOISE * published) else 0


def _rejected(recent: Series[Queue]) -> int:
    """Return at most how many messages consumers rejected and the queue no longer holds."""
    first, final = recent[0].value, recent[-1].value
    delivered = delta(recent, "deliver", "get") - delta(recent, "redeliver")
    unacked = (final.messages_unacked or 0) - (first.messages_unacked or 0)
    added = held_dead_letters(final) - held_dead_letters(first)
    return max(0, delivered - delta(recent, "ack") - unacked - added)
