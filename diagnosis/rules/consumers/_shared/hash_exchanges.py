"""Exchanges that divide their messages among the queues that are bound to them, by a hash of each message.

No other queue gets the share of one of them. If that queue is unbound, its share goes to the others from then on.
Source: https://github.com/rabbitmq/rabbitmq-server/tree/main/deps/rabbitmq_consistent_hash_exchange
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from ackscope.topology import Exchange
from diagnosis.memo import per_view
from diagnosis.view import View

CONSISTENT = "x-consistent-hash"
"""It takes the routing key of each binding for the weight of its queue."""
_TYPES = (CONSISTENT, "x-modulus-hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class HashExchange:
    """An exchange that divides its messages among queues.

    Attributes:
        exchange: as it was read last.
        weights: virtual host and name of the queues that are bound to it, in order of their names -> the share that
            each should get, in proportion to the others.
    """

    exchange: Exchange
    weights: Mapping[tuple[str, str], int]

    @property
    def name(self) -> str:
        """The name of the exchange."""
        return self.exchange.name

    @property
    def queues(self) -> tuple[tuple[str, str], ...]:
        """The queues that are bound to it."""
        return tuple(self.weights)

    def facts(self, view: View) -> dict[str, Fact]:
        """Return name, number of queues, and how many of them have a consumer."""
        found = [view.queue(*key) for key in self.queues]
        consumed = sum(1 for queue in found if queue is not None and queue.consumers)
        return {"name": self.name, "queues": len(self.queues), "consumed": consumed}


def hash_exchange_of(view: View, queue: Queue) -> HashExchange | None:
    """Return the exchange that gives a queue its share; None without one."""
    return per_view(view, _by_queue).get(queue.key)


def hash_exchanges(view: View) -> tuple[HashExchange, ...]:
    """Return the exchanges that divide their messages among two or more queues, sorted."""
    return per_view(view, _hash_exchanges)


def _by_queue(view: View) -> dict[tuple[str, str], HashExchange]:
    return {key: each for each in hash_exchanges(view) for key in each.queues}


def _hash_exchanges(view: View) -> tuple[HashExchange, ...]:
    known = {exchange.key: exchange for exchange in view.exchanges if exchange.type in _TYPES}
    bound: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for binding in (view.bindings or ()) if known else ():
        exchange = known.get((binding.vhost, binding.source))
        if exchange is not None and binding.destination_type == "queue":
            weight = binding.routing_key if exchange.type == CONSISTENT else ""
            bound[exchange.key][binding.vhost, binding.destination] += int(weight) if weight.isdecimal() else 1
    return tuple(
        HashExchange(exchange=known[key], weights=dict(sorted(weights.items())))
        for key, weights in sorted(bound.items())
        if len(weights) > 1
    )
