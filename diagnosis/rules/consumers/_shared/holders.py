"""Which channels hold the unacknowledged messages of a queue, where the broker's sources contradict each other.

A channel's own number can be stale: a broker that takes messages back from a consumer may leave them in the statistics
of its channel. The queue's number is right then, because the queue is what delivers.
"""

from ackscope.snapshot import Channel, Consumer, Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.rules.consumers._shared.turnover import grouped_by_reading

_READINGS = 3


def consumers_of(view: View, channel: Channel) -> tuple[tuple[Consumer, ...], ...]:
    """Return the consumers of a channel at each reading of consumers, oldest first."""
    return tuple(tuple(by_channel.get(channel.name, ())) for by_channel in per_view(view, _by_channel))


def _by_channel(view: View) -> list[dict[str | None, list[Consumer]]]:
    return grouped_by_reading(view, lambda each: each.channel_name)


def queues_of(view: View, channel: Channel) -> tuple[Queue, ...]:
    """Return the queues that a channel has consumed from recently, also by consumers that were cancelled since."""
    keys = {(each.vhost, each.queue) for consumers in consumers_of(view, channel) for each in consumers}
    return tuple(queue for key in sorted(keys) if (queue := view.queue(*key)) is not None)


def unaccounted(view: View, queue: Queue, but: str) -> int:
    """Return how many unacknowledged messages of a queue the channels of its present consumers do not hold.

    A channel that also serves other queues may hold them all. What a queue held less a moment ago may be on its way.

    Args:
        view: the view that is judged.
        queue: the queue.
        but: the name of a channel that is left out.
    """
    channels = {link.channel.name: link.channel for link in view.links(queue) if link.channel is not None}
    least = min(held(seen.value) for seen in (*view.history(queue)[-_READINGS:],))
    return least - sum(held(channel) for name, channel in channels.items() if name != but)


def is_stale(view: View, channel: Channel) -> bool:
    """Return whether a channel counts more messages than all queues do that it consumed from, at three readings."""
    queues = queues_of(view, channel)
    if not queues or any(queue.type == "stream" for queue in queues):
        return False
    histories = [view.history(queue)[-_READINGS:] for queue in queues]
    return sum(max(held(seen.value) for seen in history) for history in histories if history) < held(channel)
