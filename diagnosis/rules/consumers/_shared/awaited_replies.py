"""Stuck consumers that may wait for a reply: their connections have published, and consume from reply queues as well.

A handler that sends a request and waits for the reply holds its own message until then. If the request goes to the
queue that it consumes from, and all consumers wait so, none is left to answer.
Source: https://www.rabbitmq.com/docs/direct-reply-to, https://www.rabbitmq.com/tutorials/tutorial-six-python
"""

from collections.abc import Sequence

from diagnosis.contract import ConsumerPath, View
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.queues._shared.queue import is_private


def awaiting_replies(view: View, stuck: Sequence[ConsumerPath]) -> list[str]:
    """Return the names of stuck clients if each of them may wait for a reply; else nothing."""
    published, replied = per_view(view, _published), per_view(view, _with_reply_queue)
    names = {path.connection.name for path in stuck if path.connection is not None}
    unknown = any(path.connection is None for path in stuck)
    return [] if unknown or not names <= published & replied else client_names(stuck)


def _published(view: View) -> set[str]:
    """Return the connections one of whose channels has published."""
    return {each.connection_name for each in view.channels if each.stats.publish and each.connection_name}


def _with_reply_queue(view: View) -> set[str]:
    """Return the connections that consume from a queue of their own and from another one."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for each in view.every_consumer:
        queue = view.any_queue(each.vhost, each.queue)
        if queue is not None and each.connection_name is not None:
            found[is_private(queue)].add(each.connection_name)
    return found[True] & found[False]
