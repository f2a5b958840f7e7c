"""How long consumers hold a message, and how long the way to the broker takes.

The two together tell a slow handler from a prefetch that is too small. By Little's law, messages that are held =
acknowledged a second x seconds that each is held; it needs no timestamps.
"""

from dataclasses import dataclass

from ackscope.records import ProbeState
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.series import delta, span
from diagnosis.window import Series

QUORUM_MOST = 2000
"""What a quorum queue lets a consumer without prefetch limit hold.

Source: https://www.rabbitmq.com/docs/quorum-queues; seen on 4.0.5.
"""


@dataclass(frozen=True, slots=True)
class HoldTime:
    """What consumers of a queue did over a while.

    Attributes:
        seconds: how long it was watched.
        unacked: messages that they held, on average.
        acked: messages that they acknowledged.
        published: messages that came meanwhile.
    """

    seconds: float
    unacked: float
    acked: int
    published: int

    @property
    def ack_rate(self) -> float:
        """Acknowledged a second."""
        return self.acked / self.seconds

    @property
    def publish_rate(self) -> float:
        """Published a second."""
        return self.published / self.seconds

    @property
    def hold(self) -> float:
        """Seconds from delivery to acknowledgement of one message, on average."""
        return self.unacked / self.ack_rate


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A question and its answer, as the probe times it.

    Attributes:
        node: that answered.
        seconds: the median of the last minute.
    """

    node: str
    seconds: float


def hold_time(series: Series[Queue]) -> HoldTime | None:
    """The hold time of a queue over a stretch of its history; None where nothing was acknowledged in it."""
    seconds, acked = span(series), delta(series, "ack")
    held = [seen.value.messages_unacked for seen in series if seen.value.messages_unacked is not None]
    if seconds <= 0 or acked <= 0 or not held:
        return None
    return HoldTime(seconds, sum(held) / len(held), acked, delta(series, "publish"))


def round_trip(view: View, node: str | None) -> RoundTrip | None:
    """The round trip to a node, else the longest to any; None where no probe can tell."""
    known: list[RoundTrip] = []
    for outcome in view.outcomes_of("rtt"):
        step = outcome.steps.get("declare")
        if outcome.state is ProbeState.RUNNING and not outcome.doubtful and step and step.seconds.p50 is not None:
            known.append(RoundTrip(outcome.node, step.seconds.p50))
    own = [each for each in known if each.node == node]
    return max(own or known, key=lambda each: each.seconds, default=None)


def prefetch(view: View, link: ConsumerPath) -> int | None:
    """How many messages a consumer may hold; 0 is no limit, None not known.

    The consumer's own figure is the truth; a limit that a channel shares (3.x) counts where it has none.
    """
    own = link.consumer.prefetch_count
    shared = link.channel.global_prefetch_count if link.channel else None
    if own == 0 and shared and view.queues_served(link.channel.name if link.channel else "") == 1:
        return shared
    return own


def may_hold(view: View, queue: Queue) -> int | None:
    """How many messages the working consumers of a queue may hold together.

    None where that is not known, where nobody has to acknowledge, and where a consumer has no limit at all.
    """
    links = [link for link in view.links(queue) if link.consumer.active is not False]
    allowed = [prefetch(view, link) for link in links if link.consumer.ack_required is not False]
    if not allowed or None in allowed:
        return None
    if 0 in allowed and queue.type != "quorum":
        return None
    return sum(each or QUORUM_MOST for each in allowed)
