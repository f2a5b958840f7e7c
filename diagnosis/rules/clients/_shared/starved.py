"""Finds queues that grow while nobody consumes from them: of a client that fails each time before it can consume."""

from collections.abc import Sequence

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.names import look_alike
from diagnosis.purpose import had_consumer, was_consumed
from diagnosis.routes import is_delay, may_get_dead_letters
from diagnosis.rules.consumers._shared.similar_queues import similar_queue
from diagnosis.rules.publishers.pub_unroutable_alternate import alternate_places

_LEAVES = 15.0
"""Seconds within which a consumer that now reconnects in vain may still be listed, after the loop has begun."""


def of_one_vhost(queues: Sequence[Queue]) -> Sequence[Queue]:
    """Return the queues if they are in one virtual host, else none.

    A client that is not listed belongs to one virtual host: queues of several are not all its own, and nobody knows
    which are.
    """
    return queues if len({queue.vhost for queue in queues}) == 1 else ()


def starved_queues(view: View, vhost: str | None, since: Instant) -> tuple[Queue, ...]:
    """Return the queues of a virtual host, or of all, that grow and had no consumer since a loop began.

    Where it is not known to which virtual host the loop belongs, a queue that has a better explanation is left out: the
    consumers that it lacks are there, at a queue that gets nothing.
    """
    return tuple(
        queue
        for queue in view.queues
        if (vhost is None or queue.vhost == vhost)
        and queue.consumers == 0
        and queue.messages_ready
        # A stream keeps its messages, and what expires unread need not be consumed.
        and queue.type != "stream"
        and (was_consumed(queue) or queue.setting("message-ttl") is None)
        and not queue.exclusive
        and view.moved(queue, "publish")
        and not is_delay(view, queue)
        and not may_get_dead_letters(view, queue)
        and queue.key not in alternate_places(view)
        and not had_consumer(view.history(queue)[-3:])
        and not had_consumer(tuple(seen for seen in view.history(queue) if seen.at.since(since) > _LEAVES))
        and not (queue.stats.get or queue.stats.get_no_ack)
        and not (vhost is None and _consumed_elsewhere(view, queue))
    )


def _consumed_elsewhere(view: View, queue: Queue) -> bool:
    """Return whether consumers wait at its namesake in another virtual host, or at one whose name looks the same."""
    similar = similar_queue(view, queue)
    return similar is not None and (similar.vhost is not None or look_alike(similar.name, queue.name))
