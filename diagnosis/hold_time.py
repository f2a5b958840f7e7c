"""Hold time of messages at consumers, and round trip to the broker.

Together they distinguish a slow handler from a prefetch that is too small. By Little's law, unacknowledged messages =
acknowledgements per second x seconds that each message is held. This needs no timestamps.
"""

from dataclasses import dataclass
from math import ceil

from ackscope.records import ProbeState
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.series import delta, span
from diagnosis.window import Series

QUORUM_MOST = 2000
"""Number of messages that a consumer without prefetch limit may hold from a quorum queue.

Source: https://www.rabbitmq.com/docs/quorum-queues; seen on 4.0.5.
"""

_PREFETCH_SECONDS, _PREFETCH_MOST, _PREFETCH_BYTES = 10.0, 300, 16 * 2**20
"""Work that an advised prefetch holds, in seconds, messages and bytes."""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """What the consumers of a queue did over a period.

    Attributes:
        seconds: length of the period.
        unacked: mean number of unacknowledged messages.
        acked: messages acknowledged in the period.
        published: messages published in the period.
    """

    seconds: float
    unacked: float
    acked: int
    published: int

    @property
    def ack_rate(self) -> float:
        """Acknowledgements per second."""
        return self.acked / self.seconds

    @property
    def publish_rate(self) -> float:
        """Messages published per second."""
        return self.published / self.seconds

    @property
    def hold(self) -> float:
        """Mean seconds from delivery to acknowledgement of a message."""
        return self.unacked / self.ack_rate


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A round trip to a node, as the rtt probe measures it.

    Attributes:
        node: the node that answered.
        seconds: median over the last minute.
    """

    node: str
    seconds: float


def hold_time(series: Series[Queue]) -> HoldTime | None:
    """Return the hold time of a queue over a stretch of its history; None if nothing was acknowledged in it."""
    seconds, acked = span(series), delta(series, "ack")
    held = [seen.value.messages_unacked for seen in series if seen.value.messages_unacked is not None]
    if seconds <= 0 or acked <= 0 or not held:
        return None
    return HoldTime(seconds, sum(held) / len(held), acked, delta(series, "publish"))


def round_trip(view: View, node: str | None) -> RoundTrip | None:
    """Return the round trip to a node, else the longest to any node; None if no probe measured one."""
    known: list[RoundTrip] = []
    for outcome in view.outcomes_of("rtt"):
        step = outcome.steps.get("declare")
        if outcome.state is ProbeState.RUNNING and not outcome.doubtful and step and step.seconds.p50 is not None:
            known.append(RoundTrip(outcome.node, step.seconds.p50))
    own = [each for each in known if each.node == node]
    return max(own or known, key=lambda each: each.seconds, default=None)


def prefetch(view: View, link: ConsumerPath) -> int | None:
    """Return how many messages a consumer may hold; 0 means no limit, None means unknown.

    The consumer's own prefetch counts. If it has none, the global prefetch of its channel (3.x) counts, provided that
    the channel consumes from one queue only.
    """
    if link.is_uncounted:
        # The broker may say 0, although credit limits it.
        return None
    own = link.consumer.prefetch_count
    shared = link.channel.global_prefetch_count if link.channel else None
    if own == 0 and shared and view.queues_served(link.channel.name if link.channel else "") == 1:
        return shared
    return own


def advised_prefetch(queue: Queue, ack_rate: float) -> int:
    """Return a prefetch that suits a consumer: the work of 10 s, at most 300 messages and 16 MiB of them.

    Args:
        queue: its queue, which tells the mean size of its messages.
        ack_rate: messages that the consumer acknowledges per second.

    Source: https://www.rabbitmq.com/docs/confirms#channel-qos-prefetch-throughput; 100 to 300 suit quick consumers.
    """
    size = (queue.message_bytes or 0) / queue.messages if queue.messages else 0.0
    most = min(_PREFETCH_MOST, _PREFETCH_BYTES / size) if size else _PREFETCH_MOST
    return max(1, int(min(most, ceil(_PREFETCH_SECONDS * ack_rate))))


def may_hold(view: View, queue: Queue) -> int | None:
    """Return how many messages the active consumers of a queue may hold together.

    Returns None if that is unknown, if no consumer has to acknowledge, or if a consumer has no limit.
    """
    links = [link for link in view.links(queue) if link.consumer.active is not False]
    allowed = [prefetch(view, link) for link in links if link.consumer.ack_required is not False]
    if not allowed or None in allowed:
        return None
    if 0 in allowed and queue.type != "quorum":
        return None
    return sum(each or QUORUM_MOST for each in allowed)
