"""What a queue was used for, from its counters: clients took its messages, or they left by expiry.

Counters since the queue (or its node) started show a consumer that left long ago. After a restart of the node they
begin at 0, and only settings and names are left to judge by.
"""

import math
from collections.abc import Iterable

from ackscope.snapshot import Queue
from diagnosis.series import count
from diagnosis.view import View
from diagnosis.window import Series

DELIVERED = ("deliver", "get", "deliver_no_ack", "get_no_ack")
"""Counters of messages that were sent to a client."""

CONSUMED = ("ack", "deliver_no_ack", "get_no_ack")
"""Counters of messages that a client took from a queue for good."""

POLLED = ("get", "get_no_ack")
"""Counters of messages that a client fetched with basic.get."""

MQTT_SESSIONS = "mqtt-subscription-"
"""Prefix of the queues of MQTT sessions, which the broker deletes when the session ends."""

FEDERATION_QUEUES = "federation: "
"""Prefix of the queues that federation links make at their upstream, one for each exchange that they read."""

_MQTT_QUALITIES = ("qos0", "qos1")

_REFRESH = 5.0
"""Seconds by which a counter may be newer than the number of messages."""

_LEAST_POLLED = 0.1
"""Minimum share of the published messages that clients polled: a person who looks at a few of them is no consumer."""


def mqtt_client(queue: Queue) -> str | None:
    """Return the client id of the MQTT session that a queue belongs to; None if it belongs to none."""
    return _session_client(queue.name)


def mqtt_clients(names: Iterable[str]) -> list[str]:
    """Return the client ids of the MQTT sessions that queues of these names belong to; [] if one belongs to none."""
    found = [_session_client(name) for name in names]
    return [] if None in found else sorted({each for each in found if each is not None})


def _session_client(queue_name: str) -> str | None:
    client = queue_name.removeprefix(MQTT_SESSIONS)
    if client == queue_name or not client.endswith(_MQTT_QUALITIES):
        return None
    return client[: -len(_MQTT_QUALITIES[0])]


def federated_to(queue: Queue) -> str | None:
    """Return the downstream whose federation link alone consumes from a queue; None if it is no such queue.

    The name is `federation: EXCHANGE -> CLUSTER`, then `:VHOST:EXCHANGE` where these differ; the argument
    `x-internal-purpose` marks the queue as the plugin's own (seen on 3.10.8 and 4.3.6).
    """
    if not queue.name.startswith(FEDERATION_QUEUES):
        return None
    if queue.settings_known and queue.arguments.get("x-internal-purpose") != "federation":
        return None
    return queue.name.rpartition(" -> ")[2] or None


def was_consumed(queue: Queue) -> bool:
    """Return whether the queue has or had a consumer, or was polled, since its counters began."""
    if queue.consumers or count(queue.stats, "deliver", "deliver_no_ack"):
        return True
    polled = count(queue.stats, "ack", "get_no_ack")
    return polled > 0 and polled >= _LEAST_POLLED * count(queue.stats, "publish")


def had_consumer(history: Series[Queue]) -> bool:
    """Return whether a consumer was seen in one of these readings."""
    return any(seen.value.consumers for seen in history)


def left_unconsumed(view: View, queue: Queue) -> int:
    """Return a minimum of the messages that left without a client, since the counters began; 0 if none is proven.

    Dead letters that arrive are not counted as published, so for a queue that gets them the minimum is lower.
    """
    limits = view.limits(queue).queues
    history = view.history(queue)
    published = [seen.value.stats.publish or 0 for seen in history]
    most = 0
    for index, seen in enumerate(history):
        if seen.value.messages is None or len(history) < 2:
            continue
        first, end = max(index - 1, 0), min(index + 1, len(history) - 1)
        # The counter may be newer than the number of messages.
        rate = (published[end] - published[first]) / history[end].at.since(history[first].at)
        rate = max(rate, seen.value.rates.get("publish", 0.0))
        unsure = max(limits.loss_least - 1, math.ceil(max(limits.loss_skew, _REFRESH) * rate))
        gone = published[index] - count(seen.value.stats, *CONSUMED) - seen.value.messages
        most = max(most, gone if rate == 0 and gone > unsure else gone - unsure)
    return most


def dead_letters_received(queue: Queue) -> int:
    """Return a minimum of the messages that arrived without a publish since the counters began."""
    stats = queue.stats
    return max(0, count(stats, *CONSUMED) + (queue.messages or 0) - count(stats, "publish"))
