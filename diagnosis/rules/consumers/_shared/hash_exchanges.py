"""Exchanges that divide their messages among the queues that are bound to them, by a hash of each message.

No other queue gets the share of one of them. If that queue is unbound, its share goes to the others from then on.
Source: https://github.com/rabbitmq/rabbitmq-server/tree/main/deps/rabbitmq_consistent_hash_exchange
"""

from collections import defaultdict
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.memo import per_view
from diagnosis.view import View

_TYPES = ("x-consistent-hash", "x-modulus-hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashExchange:
    """An exchange that divides its messages among queues.

    Attributes:
        queues: virtual host and name of the queues that are bound to it, in order of their names.
    """

    name: str
    queues: tuple[tuple[str, str], ...]

    def facts(self, view: View) -> dict[str, Fact]:
        """Return name, number of queues, and how many of them have a consumer."""
        found = [view.queue(*key) for key in self.queues]
        consumed = sum(1 for queue in found if queue is not None and queue.consumers)
        return {"name": self.name, "queues": len(self.queues), "consumed": consumed}


def hash_exchange_of(view: View, queue: Queue) -> HashExchange | None:
    """Return the exchange that gives a queue its share; None without one."""
    return per_view(view, _by_queue).get(queue.key)


def _by_queue(view: View) -> dict[tuple[str, str], HashExchange]:
    names = {exchange.key for exchange in view.exchanges if exchange.type in _TYPES}
    bound: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for binding in (view.bindings or ()) if names else ():
        if binding.destination_type == "queue" and (binding.vhost, binding.source) in names:
            bound[binding.vhost, binding.source].add((binding.vhost, binding.destination))
    return {
        key: HashExchange(name=name, queues=tuple(sorted(queues)))
        for (_, name), queues in bound.items()
        if len(queues) > 1
        for key in queues
    }
