"""Queues that got from an exchange what it loses now.

The law: an exchange goes on to receive as before. At about the same time a queue behind it, which got so many messages
a second, gets none any more, and the exchange begins to lose as many. So these are the messages that the queue got: its
binding is gone, or their publisher writes other keys or headers. That nobody has subscribed to them is excluded.
"""

from collections.abc import Sequence

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.publishers._shared.away_queues import exchanges_to
from diagnosis.rules.publishers._shared.lossy_exchanges import SAME_RATE, LossyExchange
from diagnosis.rules.publishers._shared.publishers import ActivePublisher
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import count, delta, span
from diagnosis.window import Series

_SILENT = 20.0
"""Seconds without a message from which on a queue with a steady inflow gets none."""
_FED = 10.0
"""Least seconds of inflow from which its rate is known."""
_APART = 15.0
"""Seconds by which the end of the inflow and the begin of the loss may be seen apart: exchanges are read that often."""


def stopped_queues(
    view: View, counter: str, lossy: LossyExchange, publishers: Sequence[ActivePublisher]
) -> tuple[Series[Queue], ...]:
    """Return the queues that got what an exchange loses, each with the readings in which it did.

    Args:
        view: the view that is being judged.
        counter: of channels, `drop_unroutable` or `return_unroutable`.
        lossy: the exchange.
        publishers: those whose messages it loses.
    """
    exchange = lossy.exchange
    if not exchange.name or not lossy.rate:
        return ()
    found = []
    for queue in view.queues:
        if queue.vhost != exchange.vhost or is_private(queue) or view.moved(queue, "publish"):
            continue
        if exchange.name in exchanges_to(view, queue.vhost, queue.name):
            fed = _fed(view, queue)
            if fed and _began_then(view, counter, lossy, publishers, fed[-1].at):
                found.append(fed)
    alike = tuple(fed for fed in found if _is_same(_rate(fed), lossy.rate))
    return alike or (tuple(found) if _is_same(sum(map(_rate, found)), lossy.rate) else ())


def stopped_facts(view: View, stopped: Sequence[Series[Queue]]) -> list[Fact]:
    """Return facts about queues that got what an exchange loses.

    Returns:
        `{"name", "until", "publish_rate", "clients"}` of each; `clients` consume from it now.
    """
    return [
        {
            "name": fed[-1].value.name,
            "until": fed[-1].at.iso(),
            "publish_rate": _rate(fed),
            "clients": list[Fact](client_names(view.links(fed[-1].value))),
        }
        for fed in stopped
    ]


def _fed(view: View, queue: Queue) -> Series[Queue]:
    """Return the readings in which a queue got messages, if it gets none any more; else ()."""
    history, final = view.history(queue), count(queue.stats, "publish")
    fed = tuple(seen for seen in history if count(seen.value.stats, "publish") < final)
    fed = history[: len(fed) + 1]
    silent = len(fed) < len(history) and history[-1].at.since(fed[-1].at) >= _SILENT
    return fed if silent and len(fed) > 1 and span(fed) >= _FED else ()


def _rate(fed: Series[Queue]) -> float:
    """Return the messages a second that a queue got; the last interval may have been a part of one."""
    whole = fed[:-1] if len(fed) > 2 else fed
    return delta(whole, "publish") / span(whole)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_RATE * max(one, other)


def _began_then(
    view: View, counter: str, lossy: LossyExchange, publishers: Sequence[ActivePublisher], at: Instant
) -> bool:
    """Return whether a loss began at about a time: between two readings of the exchange, or by what was lost since."""
    begin, end = lossy.lossy[0].at, lossy.lossy[min(1, len(lossy.lossy) - 1)].at
    if begin.since(at) <= _APART and at.since(end) <= _APART:
        return True
    lost = sum(count(each.channel.stats, counter) for each in publishers)
    lasted, silent = lost / lossy.rate, view.now.since(at)
    return abs(lasted - silent) <= max(_APART, SAME_RATE * silent)
