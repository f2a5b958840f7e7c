"""How many ready messages consumers may have returned.

The law: a returned message is the next to be delivered. A classic queue puts it where it was, before all that was never
delivered; a quorum queue with a delivery limit has a queue of returns, and empties it first. So a message that is
delivered for the first time shows that no returned one is ready, whatever the backlog. Those that are ready now came
back after the last first delivery.

A quorum queue without a delivery limit puts what is returned behind all others, one with delayed retries keeps it for a
while, and a priority queue delivers what is more urgent before it. A TTL or a length limit deletes what is returned.
Source: https://www.rabbitmq.com/docs/nack; rabbit_fifo, `take_next_msg` and `#return{}` (3.10 to 4.3).
"""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import OLDEST_SECONDS, levels
from diagnosis.rules.consumers.poison_drop import OTHER_EXITS, delivery_limit
from diagnosis.window import Series

_ORDERS = ("max-priority", "delayed-retry-type")
"""Settings by which a returned message is not the next one."""


def returned(view: View, queue: Queue, history: Series[Queue]) -> int | None:
    """Return the most messages that may be ready because they were returned; None if it may be all that are ready.

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        history: readings of it, oldest first.
    """
    if not _next_is_returned(view, queue) or may_hold(view, queue) is None:
        return None
    known = [(seen.at, each) for seen in history if (each := levels(seen.value)) is not None]
    if not known:
        return None
    now = known[-1][1]
    first_sent = now.delivered + now.auto
    before = [at for at, each in known if each.delivered + each.auto < first_sent]
    # A statistic may be that old: what was delivered since that reading was delivered after it.
    settled = [at for at, _ in known if before and before[-1].since(at) >= OLDEST_SECONDS]
    if not settled:
        return None
    # More was settled without an ack since then. Nobody knows whether it was returned.
    return now.discarded - min(each.discarded for at, each in known if at.mono >= settled[-1].mono)


def _next_is_returned(view: View, queue: Queue) -> bool:
    """Return whether a returned message is the next that a queue delivers, and nothing else deletes it."""
    if not queue.settings_known or any(queue.setting(name) is not None for name in (*_ORDERS, *OTHER_EXITS)):
        return False
    return queue.type == "classic" or bool(delivery_limit(queue, view.version))
