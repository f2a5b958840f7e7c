"""Messages that a consumer moves to an exchange which is called after its queue, such as those that it failed on."""

import re
from collections.abc import Collection

from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.rules.consumers._shared.objects import client_names

_ONE_MORE_WORD = re.compile(r"[^\w]+[^\W_]+|_+[^\W_]+")


def moved_aside(view: View, exchange: Exchange, losers: Collection[str]) -> tuple[str, ...]:
    """Return the queues that an exchange is called after, and that clients consume from which lose all they publish.

    The name is that of the queue and one more word, whatever it is. An event that nobody needs looks the same by its
    counters; only the name tells them apart.

    Args:
        view: the view that is being judged.
        exchange: the exchange that loses messages.
        losers: names of clients that lose all that they publish to it.
    """
    return tuple(
        queue.name
        for queue in view.queues
        if queue.vhost == exchange.vhost
        and queue.name
        and exchange.name.startswith(queue.name)
        and _ONE_MORE_WORD.fullmatch(exchange.name[len(queue.name) :])
        and set(losers) & set(client_names(view.links(queue)))
    )
