"""Where messages go: the queues that an exchange reaches, and those that other queues dead-letter into.

Known are direct, fanout and topic exchanges, the default one, bindings between exchanges, and alternate exchanges.
What a headers exchange or one of a plugin does with a message cannot be alternate from its key.
Source: https://www.rabbitmq.com/docs/exchanges, https://www.rabbitmq.com/docs/ae
"""

from collections import defaultdict
from functools import cached_property

from ackscope.snapshot import Queue
from ackscope.topology import Binding, Exchange
from diagnosis.memo import per_view
from diagnosis.view import View

Place = tuple[str, str]
"""Virtual host and name of a queue."""


def targets(view: View, vhost: str, exchange: str, key: str | None) -> frozenset[Place] | None:
    """The queues that a message would reach.

    Args:
        view: the one look that is being judged.
        vhost: of the exchange.
        exchange: its name, "" for the default one.
        key: the routing key; None where it is not known: then all queues that some key reaches.

    Returns:
        Virtual host and name of each queue; empty where the message is dropped, also for want of the exchange; None
        where that cannot be alternate (bindings not known, a type of exchange that does not go by the key).
    """
    return per_view(view, _Routes).targets(vhost, exchange, key)


def dead_letter_targets(view: View) -> frozenset[Place]:
    """Queues into which other queues dead-letter, by arguments or policies, and bindings.

    Left out are those that only a delay dead-letters into (a queue with a TTL and a dead-letter exchange, and without
    consumers): what comes out of a delay is work, not waste.
    """
    return per_view(view, _Routes).dead_letter_targets


def dead_letters_to(view: View, queue: Queue) -> frozenset[Place] | None:
    """The queues into which one queue dead-letters, itself included; None where it does not, or that cannot be told."""
    exchange = queue.setting("dead-letter-exchange")
    if not isinstance(exchange, str):
        return None
    key = queue.setting("dead-letter-routing-key")
    return targets(view, queue.vhost, exchange, key if isinstance(key, str) else None)


def is_delay(queue: Queue) -> bool:
    """Whether messages only wait in a queue until they expire into another one."""
    return (
        queue.consumers == 0
        and queue.setting("message-ttl") is not None
        and queue.setting("dead-letter-exchange") is not None
    )


def matches(pattern: str, key: str) -> bool:
    """Whether a topic exchange takes a key for a binding: `*` stands for one word, `#` for any number of them."""
    words = key.split(".") if key else []
    # Which prefixes of the key the pattern so far can stand for.
    reached = {0}
    for part in pattern.split(".") if pattern else []:
        if part == "#":
            reached = set(range(min(reached), len(words) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(words) and part in ("*", words[at])}
    return len(words) in reached


class _Routes:
    """The bindings of a view, by where they start."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[tuple[str, str, str | None], frozenset[Place] | None] = {}

    def targets(self, vhost: str, exchange: str, key: str | None) -> frozenset[Place] | None:
        asked = (vhost, exchange, key)
        if asked not in self._known:
            self._known[asked] = self._walk(vhost, exchange, key)
        return self._known[asked]

    @cached_property
    def dead_letter_targets(self) -> frozenset[Place]:
        found: set[Place] = set()
        for queue in self._view.queues:
            if queue.setting("dead-letter-exchange") is not None and not is_delay(queue):
                found |= (dead_letters_to(self._view, queue) or frozenset()) - {queue.key}
        return frozenset(found)

    def _walk(self, vhost: str, exchange: str, key: str | None) -> frozenset[Place] | None:
        if exchange == "":
            return self._by_name(vhost, key)
        if self._view.bindings is None or not self._view.fresh("exchanges"):
            return None
        found: set[Place] = set()
        seen: set[str] = set()
        following = [exchange]
        while following:
            name = following.pop()
            if name in seen:
                continue
            seen.add(name)
            bound = self._bound(vhost, name, key)
            if bound is None:
                return None
            found |= {(vhost, each.destination) for each in bound if each.destination_type == "queue"}
            following += [each.destination for each in bound if each.destination_type == "exchange"]
            # Of an unknown key it cannot be said that no binding takes it: then both ways are open.
            if not bound or key is None:
                other = self._alternate(vhost, name)
                if other is None:
                    return None
                following += [each for each in other if each]
        return frozenset(found)

    def _by_name(self, vhost: str, key: str | None) -> frozenset[Place] | None:
        if key is None or not self._view.fresh("queues"):
            return None
        return frozenset({(vhost, key)} & self._queues)

    def _bound(self, vhost: str, name: str, key: str | None) -> list[Binding] | None:
        """The bindings that a key takes at one exchange; none where there is no such exchange."""
        exchange = self._exchanges.get((vhost, name))
        starting = self._bindings.get((vhost, name), {})
        if exchange is None:
            return []
        kind = exchange.arguments.get("x-delayed-type") if exchange.type == "x-delayed-message" else exchange.type
        if key is None or kind == "fanout":
            return [each for bindings in starting.values() for each in bindings]
        if kind == "direct":
            return starting.get(key, [])
        if kind == "topic":
            return [each for pattern in self._patterns(vhost, name, key) for each in starting[pattern]]
        return None if starting else []

    def _patterns(self, vhost: str, name: str, key: str) -> list[str]:
        exact = [key] if key in self._bindings.get((vhost, name), ()) and not _is_wild(key) else []
        return exact + [pattern for pattern in self._wild.get((vhost, name), ()) if matches(pattern, key)]

    def _alternate(self, vhost: str, name: str) -> list[str] | None:
        """Where an exchange sends what none of its bindings takes: at most one; None where that cannot be told."""
        exchange = self._exchanges.get((vhost, name))
        if exchange is None:
            return []
        own = exchange.arguments.get("alternate-exchange")
        if isinstance(own, str):
            return [own]
        if not exchange.policy:
            return []
        if not self._view.fresh("policies"):
            return None
        policy = next(
            (p for p in self._view.policies if p.vhost == vhost and p.name == exchange.policy and not p.operator), None
        )
        alternate = policy.definition.get("alternate-exchange") if policy else None
        return [alternate] if isinstance(alternate, str) else []

    @cached_property
    def _queues(self) -> set[Place]:
        return {queue.key for queue in self._view.part("queues")}

    @cached_property
    def _exchanges(self) -> dict[tuple[str, str], Exchange]:
        return {exchange.key: exchange for exchange in self._view.exchanges}

    @cached_property
    def _bindings(self) -> dict[tuple[str, str], dict[str, list[Binding]]]:
        """(virtual host, exchange) -> routing key -> bindings."""
        found: dict[tuple[str, str], dict[str, list[Binding]]] = defaultdict(lambda: defaultdict(list))
        for binding in self._view.bindings or ():
            found[(binding.vhost, binding.source)][binding.routing_key].append(binding)
        return {place: dict(by_key) for place, by_key in found.items()}

    @cached_property
    def _wild(self) -> dict[tuple[str, str], list[str]]:
        """The patterns of each exchange that stand for more than themselves."""
        found = {place: [key for key in by_key if _is_wild(key)] for place, by_key in self._bindings.items()}
        return {place: patterns for place, patterns in found.items() if patterns}


def _is_wild(key: str) -> bool:
    return "*" in key or "#" in key
