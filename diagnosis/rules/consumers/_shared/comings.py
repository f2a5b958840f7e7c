"""Consumers that come and go: how often they came back to a queue that had none, and who they were."""

from itertools import pairwise

from ackscope.findings import Fact
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.channel_loops import MIN_PER_CYCLE
from diagnosis.series import count, delta, span, stretch
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


def comings_without_acks(history: Series[Queue]) -> int:
    """Return how many times consumers came to a queue, over readings in which nothing is acknowledged.

    Also over readings that do not tell the consumers, such as the broker's own samples. There messages wait while none
    is held, which a consumer with room would take, or messages come back, which a consumer had that ended.
    A consumer that stays and requeues looks the same there, and has to be excluded otherwise.
    """
    found, absent = 0, False
    for older, newer in pairwise(history):
        before = older.value
        absent = absent or before.consumers == 0
        if before.consumers is None:
            waiting = bool(before.messages_ready) and before.messages_unacked == 0
            absent = absent or waiting or delta((older, newer), "redeliver") > 0
        if absent and delta((older, newer), "deliver") > 0:
            found += 1
            absent = False
    return found


def fruitless_comings(view: View, queue: Queue) -> Series[Queue]:
    """Return the readings in which consumers came back at least twice, to the same messages, and acknowledged none.

    A consumer that stays and requeues them has to be excluded otherwise where readings do not tell the consumers.
    """
    if not queue.stats.redeliver or not (queue.messages_ready or queue.messages_unacked) or view.moved(queue, "ack"):
        return ()
    tail = stretch(view.history(queue), lambda older, newer: delta((older, newer), "ack") == 0)
    delivered, limits = delta(tail, "deliver"), view.limits(queue)
    same = delivered > 0 and delta(tail, "redeliver") > limits.consumers.requeue_share * delivered
    return tail if same and span(tail) >= limits.early and comings_without_acks(tail) >= LASTING - 1 else ()


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


def returning_loop(view: View, queue: Queue) -> ChurnLoop | None:
    """Return the loop of channels that returns messages to a queue; None if another client may do so.

    Channels that live for a second are rarely listed with their consumer. So it must be the only loop of its virtual
    host, messages must come back in each cycle, no other queue there redelivers, and no other client consumes from it.
    """
    loops = [each for each in churn_loops(view) if each.connection.vhost == queue.vhost]
    if len(loops) != 1 or loops[0].whole or min(loops[0].delivered, loops[0].redelivered) < MIN_PER_CYCLE:
        return None
    elsewhere = any(each.key != queue.key for each in redelivering(view, queue.vhost))
    others = any(link.consumer.connection_name != loops[0].connection.name for link in view.links(queue))
    return None if elsewhere or others else loops[0]


def redelivering(view: View, vhost: str | None) -> list[Queue]:
    """Return the queues of a virtual host that redelivered recently, by name."""
    moved = (each for each in view.queues if each.vhost == vhost and each.stats.redeliver)
    return sorted((each for each in moved if view.moved(each, "redeliver")), key=lambda each: each.name)


def returning_facts(loop: ChurnLoop | None) -> dict[str, Fact] | None:
    """Return facts about a loop of channels: `{"client", "cycle_rate"}`."""
    return None if loop is None else {"client": loop.client, "cycle_rate": loop.rate}


def _connections(view: View) -> dict[str, Connection]:
    return {each.name: each for seen in view.window.readings("connections") for each in seen.value}
