"""Channels as the Prometheus endpoints know them: by their Erlang process, without connection, user and client. Pure.

The families `channel_metrics`, `channel_queue_metrics`, `channel_exchange_metrics` and `channel_queue_exchange_metrics`
have rows for each channel of AMQP 0-9-1. Consumers have no rows of their own. A channel counts its consumers, and what
it was sent from each queue; so consumers follow where both leave one possibility only.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Consumer, ProcessLists, Queue
from exporter.broker.endpoints.queues import QueueKey

CHANNEL_FAMILIES = (
    "channel_metrics",
    "channel_queue_metrics",
    "channel_exchange_metrics",
    "channel_queue_exchange_metrics",
)
"""Families with rows for each channel."""

CHANNEL_GAUGES: Mapping[str, str] = {
    "channel_consumers": "consumer_count",
    "consumer_prefetch": "prefetch_count",
    "channel_messages_unacked": "messages_unacked",
    "channel_messages_unconfirmed": "messages_unconfirmed",
    "channel_messages_uncommitted": "messages_uncommitted",
    "channel_acks_uncommitted": "acks_uncommitted",
}
"""Metric -> attribute of a channel."""

CHANNEL_QUEUE_COUNTERS: Mapping[str, str] = {
    "channel_messages_delivered_ack_total": "deliver",
    "channel_messages_delivered_total": "deliver_no_ack",
    "channel_get_ack_total": "get",
    "channel_get_total": "get_no_ack",
    "channel_get_empty_total": "get_empty",
    "channel_messages_acked_total": "ack",
    "channel_messages_redelivered_total": "redeliver",
}
"""Metric -> counter of a channel and a queue."""

CHANNEL_EXCHANGE_COUNTERS: Mapping[str, str] = {
    "channel_messages_published_total": "publish",
    "channel_messages_confirmed_total": "confirm",
    "channel_messages_unroutable_returned_total": "return_unroutable",
    "channel_messages_unroutable_dropped_total": "drop_unroutable",
}
"""Metric -> counter of a channel and an exchange."""

ROUTED = "queue_messages_published_total"
"""Metric of what a channel published to a queue through an exchange."""

Counters = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFigures:
    """Figures of one channel at its node.

    Attributes:
        gauges: attribute of a channel -> value.
        queues: queue -> counter -> messages.
        exchanges: virtual host and exchange -> counter -> messages.
        routed: queues that its messages reached.
    """

    gauges: Mapping[str, int] = field(default_factory=dict)
    queues: Mapping[QueueKey, Counters] = field(default_factory=dict)
    exchanges: Mapping[tuple[str, str], Counters] = field(default_factory=dict)
    routed: frozenset[QueueKey] = frozenset()


def process_lists(nodes: Mapping[str, Mapping[str, ChannelFigures]], queues: Iterable[Queue]) -> ProcessLists:
    """Return the channels and consumers of all nodes.

    Args:
        nodes: node -> Erlang process -> figures.
        queues: all queues, with their number of consumers.
    """
    found = {
        (node, process): figures for node, channels in sorted(nodes.items()) for process, figures in channels.items()
    }
    channels, used = [], {}
    for (node, process), figures in found.items():
        channel = _channel(node, process, figures)
        channels.append(channel)
        used[channel.name] = tuple(sorted({name for _, name in (*figures.queues, *figures.exchanges, *figures.routed)}))
    consumed = {queue.key: queue for queue in queues if queue.consumers}
    served = _served(found, {key: queue.consumers or 0 for key, queue in consumed.items()})
    single = {key for key in served if consumed[key].settings_known and consumed[key].setting("single-active-consumer")}
    return ProcessLists(channels=tuple(channels), consumers=_consumers(found, served, single), used=used)


def _name(node: str, process: str) -> str:
    return f"{process} {node}"


def _channel(node: str, process: str, figures: ChannelFigures) -> Channel:
    totals: dict[str, int] = defaultdict(int)
    for counters in (*figures.queues.values(), *figures.exchanges.values()):
        for counter, value in counters.items():
            totals[counter] += value
    gauges: Mapping[str, Any] = figures.gauges
    vhosts = {vhost for vhost, _ in (*figures.queues, *figures.exchanges)}
    return Channel(
        name=_name(node, process),
        node=node,
        vhost=min(vhosts) if len(vhosts) == 1 else None,
        confirm=True if totals["confirm"] or gauges.get("messages_unconfirmed") else None,
        **gauges,
        stats=MessageStats(**totals),
    )


def _served(
    found: Mapping[tuple[str, str], ChannelFigures], consumers: Mapping[QueueKey, int]
) -> dict[QueueKey, list[tuple[str, str]]]:
    """Return the channels of each queue's consumers, one entry for each; only of queues all of whose are known."""
    served: dict[QueueKey, list[tuple[str, str]]] = defaultdict(list)
    left: dict[tuple[str, str], int] = {}
    for channel, figures in found.items():
        count = figures.gauges.get("consumer_count", 0)
        sent = [key for key, counters in figures.queues.items() if key in consumers and _was_sent(counters)]
        if len(sent) > count:
            # It cancelled some, or consumes by turns; which of them are left is not known.
            left[channel] = count
            continue
        for key in sent:
            served[key].append(channel)
        left[channel] = count - len(sent)
    missing = {key: number - len(served[key]) for key, number in consumers.items() if number > len(served[key])}
    idle = {channel: number for channel, number in left.items() if number}
    if sum(missing.values()) == sum(idle.values()) and (len(missing) == 1 or len(idle) == 1):
        for channel, number in idle.items():
            for key, lacking in missing.items():
                served[key] += [channel] * min(number, lacking)
    return {key: channels for key, channels in served.items() if len(channels) == consumers[key]}


def _was_sent(counters: Counters) -> bool:
    return bool(counters.get("deliver") or counters.get("deliver_no_ack"))


def _consumers(
    found: Mapping[tuple[str, str], ChannelFigures],
    served: Mapping[QueueKey, list[tuple[str, str]]],
    single: Collection[QueueKey],
) -> tuple[Consumer, ...]:
    """Return the consumers.

    Args:
        found: node and process -> figures.
        served: queue -> channels of its consumers.
        single: queues with a single active consumer.
    """
    consumers = []
    for (vhost, queue), channels in sorted(served.items()):
        sent = [each for each in channels if _was_sent(found[each].queues.get((vhost, queue), {}))]
        # After a handover, the former one was sent messages, too.
        active = sent[0] if (vhost, queue) in single and len(sent) == 1 else None
        for number, (node, process) in enumerate(channels, 1):
            figures = found[node, process]
            counters = figures.queues.get((vhost, queue), {})
            both = bool(counters.get("deliver")) == bool(counters.get("deliver_no_ack"))
            consumers.append(
                Consumer(
                    tag=str(number),
                    vhost=vhost,
                    queue=queue,
                    channel_name=_name(node, process),
                    node=node,
                    prefetch_count=figures.gauges.get("prefetch_count"),
                    ack_required=None if both else bool(counters.get("deliver")),
                    active=None if active is None else active == (node, process),
                )
            )
    return tuple(consumers)
