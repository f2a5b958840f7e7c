"""What each consumer of a queue did with the messages that it was sent, from the counters of its channel.

A channel was sent more than it acknowledged and holds: it rejected the rest, or requeued it. The broker counts neither.
"""

from dataclasses import dataclass

from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import delta

_LEAST_SENT = 20
"""Messages that a consumer must have been sent before it is judged."""


@dataclass(frozen=True, slots=True)
class ConsumerBalance:
    """What a consumer did within the readings of its channel.

    Attributes:
        sent: messages that it was sent, also again.
        acked: messages that it acknowledged.
        rejected: messages that it settled otherwise: rejected, with or without requeue.
    """

    link: ConsumerPath
    sent: int
    acked: int
    rejected: int


def consumer_balances(view: View, queue: Queue) -> list[ConsumerBalance]:
    """Return what the consumers of a queue did whose channels serve no other queue, in the order of the consumers."""
    found: list[ConsumerBalance] = []
    for link in view.links(queue):
        series = view.channel_history(link.channel.name) if link.channel is not None else ()
        if len(series) < 2 or view.queues_served(series[0].value.name) != 1:
            continue
        sent, acked = delta(series, "deliver"), delta(series, "ack")
        grown = held(series[-1].value) - held(series[0].value)
        if sent >= _LEAST_SENT:
            # Also what it held at the first reading may have been rejected since.
            found.append(ConsumerBalance(link, sent, acked, min(sent, max(0, sent - acked - grown))))
    return found


def never_acknowledging(view: View, queue: Queue) -> list[ConsumerPath]:
    """Return the consumers that settled messages and acknowledged none, if others of the queue acknowledge."""
    known = consumer_balances(view, queue)
    if not any(each.acked for each in known):
        return []
    return [each.link for each in known if not each.acked and each.rejected]
