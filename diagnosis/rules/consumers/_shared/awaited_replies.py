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
    published = per_view(view, _published)
    names = [path.connection.name if path.connection is not None else "" for path in stuck]
    return client_names(stuck) if all(each in published and _has_reply_queue(view, each) for each in names) else []


def _published(view: View) -> set[str]:
    """Return the connections one of whose channels has published."""
    return {each.connection_name for each in view.channels if each.stats.publish and each.connection_name}


def _has_reply_queue(view: View, connection: str) -> bool:
    """Return whether a connection consumes from a queue of its own and from another one."""
    found = (view.any_queue(*place) for place in view.queues_consumed(connection))
    return {is_private(each) for each in found if each is not None} == {True, False}
