"""The queues behind an exchange: those that go with their clients, and those that show that messages are work.

A direct exchange that loses some keys, or a headers exchange some headers, may serve subscribers that bind only what
they want. Then nobody misses the others. It hands out work where all of its queues were made to last, and most of its
messages reach one, or the publisher waits for confirms: then a message without a queue is a mistake.
"""

from collections.abc import Sequence

from ackscope.snapshot import Queue
from ackscope.topology import Binding, Exchange
from diagnosis.contract import View
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, increase, was_routed
from diagnosis.rules.queues._shared.queue import MAX_NAMED, is_lasting, is_private

_MATCHING = ("direct", "headers")
"""Types of exchange whose bindings match exactly; with a topic exchange, subscribers choose a part by a pattern."""
_MOST = 0.5
"""Largest share of its messages that a publisher without confirms may lose: a subscriber that filters leaves more."""


def temporary_queues(view: View, exchange: Exchange) -> Sequence[str]:
    """Return the queues bound to an exchange that go without their clients, and may have been away meanwhile."""
    found = [each for name in _bound(view, exchange) if (each := view.any_queue(exchange.vhost, name)) is not None]
    return [each.name for each in found if is_private(each) or _expires(each)][:MAX_NAMED]


def work_queues(view: View, exchange: Exchange, publishers: Sequence[ActivePublisher]) -> Sequence[str]:
    """Return the queues of an exchange that show that all of its messages are work; () if they do not show it.

    Args:
        view: the view that is being judged.
        exchange: the exchange, which loses a part of its messages.
        publishers: those that may lose them; a queue gets other messages of each.
    """
    if not exchange.name or exchange.type not in _MATCHING or not exchange.durable or not publishers:
        return ()
    if not all(map(was_routed, publishers)):
        return ()
    published = sum(increase(view, each.history, "publish") for each in publishers)
    lost = sum(each.published for each in publishers)
    if lost >= published or (lost > _MOST * published and not all(each.channel.confirm for each in publishers)):
        return ()
    if any(each.destination_type != "queue" for each in view.bindings or () if _is_from(exchange, each)):
        return ()
    names = _bound(view, exchange)
    found = [each for name in names if (each := view.queue(exchange.vhost, name)) is not None]
    lasting = [each for each in found if each.settings_known and is_lasting(each) and not _expires(each)]
    return names[:MAX_NAMED] if len(lasting) == len(names) else ()


def _is_from(exchange: Exchange, binding: Binding) -> bool:
    return (binding.vhost, binding.source) == exchange.key


def _bound(view: View, exchange: Exchange) -> list[str]:
    return sorted({each.destination for each in view.bindings or () if _is_from(exchange, each)})


def _expires(queue: Queue) -> bool:
    return queue.settings_known and queue.setting("expires") is not None
