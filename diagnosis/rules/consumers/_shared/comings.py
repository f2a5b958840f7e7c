"""Consumers that come and go: how often they came back to a queue that had none, and who they were."""

from itertools import pairwise

from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.series import count, delta
from diagnosis.window import Series

LASTING = 3
"""Times that consumers must have come back: a counter that is late adds one, and a deployment is one."""


def comings(history: Series[Queue]) -> int:
    """Return how many times messages were delivered after a reading in which a queue had no consumer."""
    found, absent = 0, False
    for older, newer in pairwise(history):
        absent = absent or older.value.consumers == 0
        if absent and delta((older, newer), "deliver", "deliver_no_ack") > 0:
            found += 1
            absent = False
    return found


def was_cancelled(channel: Channel) -> bool:
    """Return whether an open channel consumed before and has no consumer any more."""
    return channel.consumer_count == 0 and count(channel.stats, "deliver", "deliver_no_ack") > 0


def seen_connections(view: View) -> dict[str, Connection]:
    """Return every connection of the window by name, as it was read last."""
    return per_view(view, _connections)


def recent_clients(view: View, queue: Queue) -> list[str]:
    """Return the application names of the consumers that a queue had in the latest readings, sorted."""
    known = seen_connections(view)
    names = {
        client_name(known.get(each.connection_name or ""), each.connection_name)
        for seen in view.window.readings("consumers")
        for each in seen.value
        if (each.vhost, each.queue) == queue.key
    }
    return sorted(name for name in names if name)


def _connections(view: View) -> dict[str, Connection]:
    return {each.name: each for seen in view.window.readings("connections") for each in seen.value}
