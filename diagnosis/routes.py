"""Computes where messages go: the queues that an exchange reaches, those that receive dead letters, and delay queues.

Supports direct, fanout, topic and the default exchange, bindings between exchanges, and alternate exchanges. The route
through a headers exchange or an exchange of a plugin cannot be derived from the routing key.
Source: https://www.rabbitmq.com/docs/exchanges, https://www.rabbitmq.com/docs/ae
"""

from collections import defaultdict
from functools import cached_property

from ackscope.snapshot import Queue
from ackscope.topology import Binding, Exchange
from diagnosis.memo import per_view
from diagnosis.preconditions import if_known
from diagnosis.purpose import dead_letters_received, had_consumer, left_unconsumed, was_consumed
from diagnosis.view import View

Place = tuple[str, str]
"""Virtual host and name of a queue."""


def targets(view: View, vhost: str, exchange: str, key: str | None) -> frozenset[Place] | None:
    """Return the queues that a message reaches.

    Args:
        view: the view that is being judged.
        vhost: virtual host of the exchange.
        exchange: name of the exchange, "" for the default one.
        key: the routing key; None if unknown, which selects all queues that any key reaches.

    Returns:
        Virtual host and name of each queue. Empty if the message is dropped, also because the exchange does not exist.
        None if the route is unknown (bindings not read, or an exchange type that does not route by key).
    """
    return per_view(view, _Routes).targets(vhost, exchange, key)


def most_targets(view: View, vhost: str, exchange: str) -> int | None:
    """Return how many queues one message to an exchange reaches at most; None if unknown."""
    return per_view(view, _Routes).most_targets(vhost, exchange)


def last_exchanges(view: View, vhost: str, exchange: str) -> tuple[str, ...]:
    """Return the exchanges after which messages of an exchange go on to no other exchange, sorted by name.

    All bindings count, whatever their keys. The result is the exchange itself if it is bound to no other one.
    """
    return per_view(view, _Routes).last_exchanges(vhost, exchange)


def dead_letter_targets(view: View) -> frozenset[Place]:
    """Return the queues into which other queues dead-letter, according to arguments, policies and bindings.

    Targets of delay queues only are left out: messages that leave a delay queue are regular work.
    """
    return per_view(view, _Routes).dead_letter_targets


def may_get_dead_letters(view: View, queue: Queue) -> bool:
    """Return whether other queues dead-letter into a queue, or may do so because their settings are unknown."""
    return if_known(lambda: queue.key in dead_letter_targets(view), otherwise=True)


def dead_letters_to(view: View, queue: Queue) -> frozenset[Place] | None:
    """Return the queues into which one queue dead-letters, possibly itself; None if none or unknown."""
    exchange = queue.setting("dead-letter-exchange")
    if not isinstance(exchange, str):
        return None
    key = queue.setting("dead-letter-routing-key")
    if isinstance(key, str) or not exchange:
        return targets(view, queue.vhost, exchange, key if isinstance(key, str) else None)
    reached = [targets(view, queue.vhost, exchange, each) for each in own_keys(view, queue)]
    if not reached or None in reached:
        return targets(view, queue.vhost, exchange, None)
    return frozenset[Place]().union(*(each for each in reached if each is not None))


def dead_lettering(view: View) -> tuple[Queue, ...]:
    """Return the queues that have or may have a dead-letter exchange; asking one with unknown settings raises."""
    return per_view(view, _dead_lettering)


def _dead_lettering(view: View) -> tuple[Queue, ...]:
    known = (
        each for each in view.queues if not each.settings_known or each.setting("dead-letter-exchange") is not None
    )
    return tuple(known)


def dead_letters_from(view: View, queue: Queue) -> tuple[Queue, ...]:
    """Return the other queues that dead-letter into a queue, delay queues too, sorted."""
    places = sorted(set(per_view(view, _Routes).sources.get(queue.key, ())) - {queue.key})
    return tuple(each for place in places if (each := view.queue(*place)) is not None)


def own_keys(view: View, queue: Queue) -> tuple[str, ...]:
    """Return the routing keys that the messages of a queue can have, sorted; () if they can have any or are unknown.

    A message that was published through the default exchange has the name of the queue as its key. One that came
    through a direct exchange has the key of a binding. Dead letters keep that key if no other one is set.
    """
    return per_view(view, _Routes).own_keys(queue)


def message_keys(view: View, queue: Queue) -> tuple[str, ...]:
    """Return the routing keys and topic patterns of a queue's messages, sorted: its name, and those of its bindings.

    Where an exchange does not route by key, its messages can have any: `#`. Only the name if bindings were not read.
    """
    return per_view(view, _Routes).message_keys(queue)


def bound_keys(view: View, vhost: str, exchange: str) -> tuple[str, ...]:
    """Return the different keys and patterns of the bindings that begin at an exchange; empty if they were not read."""
    return per_view(view, _Routes).bound_keys(vhost, exchange)


def bound_exchanges(view: View, queue: Queue) -> frozenset[str]:
    """Return the exchanges that a queue is bound to, without the default one; empty if bindings were not read."""
    return per_view(view, _Routes).bound_exchanges(queue)


def is_delay(view: View, queue: Queue) -> bool:
    """Return whether this is a delay queue: messages only wait in it until they expire into another queue.

    It has a dead-letter exchange, and no client ever took a message from it. Its messages were seen to leave without
    one; where nothing was seen to leave, its message TTL decides.
    """
    return per_view(view, _Routes).is_delay(queue)


def matches(pattern: str, key: str) -> bool:
    """Return whether a topic pattern matches a routing key: `*` is one word, `#` any number of words."""
    words = key.split(".") if key else []
    # Lengths (in words) of the prefixes of the key that the pattern so far can match.
    reached = {0}
    for part in pattern.split(".") if pattern else []:
        if part == "#":
            reached = set(range(min(reached), len(words) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(words) and part in ("*", words[at])}
    return len(words) in reached


def overlap(one: str, other: str) -> bool:
    """Return whether a routing key exists that two topic patterns match."""
    first, second = (pattern.split(".") if pattern else [] for pattern in (one, other))
    # For each number of parts of the second pattern: whether these and the parts of the first so far match a key.
    reached = [all(part == "#" for part in second[:end]) for end in range(len(second) + 1)]
    for part in first:
        row = [reached[0] and part == "#"]
        for place, theirs in enumerate(second):
            if "#" in (part, theirs):
                row.append(reached[place + 1] or row[place])
            else:
                row.append(reached[place] and ("*" in (part, theirs) or part == theirs))
        reached = row
    return reached[-1]


class _Routes:
    """Index of the bindings of a view by source exchange."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[tuple[str, str, str | None], frozenset[Place] | None] = {}
        self._delays: dict[Place, bool] = {}

    def is_delay(self, queue: Queue) -> bool:
        if queue.consumers != 0 or queue.type == "stream":
            return False
        if queue.key not in self._delays:
            self._delays[queue.key] = self._only_delays(queue)
        return self._delays[queue.key]

    def _only_delays(self, queue: Queue) -> bool:
        # What clients did comes first: it shows enough of a queue whose settings are unknown.
        if was_consumed(queue) or (queue.messages and had_consumer(self._view.history(queue))):
            return False
        if queue.setting("dead-letter-exchange") is None:
            return False
        if queue.setting("message-ttl") is not None:
            return True
        length, size = queue.setting("max-length"), queue.setting("max-length-bytes")
        if length is not None or size is not None:
            # Messages that left may have exceeded the limit.
            share = self._view.limits(queue).queues.full_share
            below = isinstance(length, int) and size is None and (queue.messages_ready or 0) < share * length
            return below and self._fed_another(queue)
        return left_unconsumed(self._view, queue) > 0 or self._fed_another(queue)

    def _fed_another(self, queue: Queue) -> bool:
        """Return whether a consumed queue received dead letters that can only be from this one."""
        for place in dead_letters_to(self._view, queue) or ():
            target = self._view.queue(*place)
            least = self._view.limits(queue).queues.loss_least
            if target is not None and target.key != queue.key and dead_letters_received(target) >= least:
                return was_consumed(target) and self.sources[place] == [queue.key]
        return False

    @cached_property
    def sources(self) -> dict[Place, list[Place]]:
        """Queues that dead-letter into each queue."""
        found: dict[Place, list[Place]] = defaultdict(list)
        for queue in self._view.queues:
            for place in dead_letters_to(self._view, queue) or ():
                found[place].append(queue.key)
        return found

    def targets(self, vhost: str, exchange: str, key: str | None) -> frozenset[Place] | None:
        asked = (vhost, exchange, key)
        if asked not in self._known:
            self._known[asked] = self._walk(vhost, exchange, key)
        return self._known[asked]

    def last_exchanges(self, vhost: str, exchange: str) -> tuple[str, ...]:
        last, seen, following = set(), set(), [exchange]
        while following:
            name = following.pop()
            if name not in seen:
                seen.add(name)
                bound = (each for bindings in self._bindings.get((vhost, name), {}).values() for each in bindings)
                further = [each.destination for each in bound if each.destination_type == "exchange"]
                following += further
                if not further:
                    last.add(name)
        return tuple(sorted(last))

    def most_targets(self, vhost: str, exchange: str) -> int | None:
        found = self._exchanges.get((vhost, exchange))
        direct = found is not None and found.type == "direct"
        keys: list[str | None] = [*self._bindings.get((vhost, exchange), ())] if direct else [None]
        reached = [self.targets(vhost, exchange, key) for key in keys]
        return None if None in reached else max((len(each) for each in reached if each is not None), default=0)

    def bound_exchanges(self, queue: Queue) -> frozenset[str]:
        return frozenset(each.source for each in self._bound_to.get(queue.key, ()))

    def own_keys(self, queue: Queue) -> tuple[str, ...]:
        if self._view.bindings is None or not self._view.fresh("exchanges"):
            return ()
        bindings = self._bound_to.get(queue.key, ())
        if not bindings and not queue.stats.publish and queue.key not in self._named_by_dead_letters:
            # Nothing shows how its messages come. What is published to a queue without a binding comes by its name.
            return ()
        keys = {queue.name}
        for binding in bindings:
            exchange = self._exchanges.get((queue.vhost, binding.source))
            kind = exchange.type if exchange else None
            exact = kind == "direct" or (kind == "topic" and not _is_wild(binding.routing_key))
            if not exact:
                return ()
            keys.add(binding.routing_key)
        return tuple(sorted(keys))

    def bound_keys(self, vhost: str, exchange: str) -> tuple[str, ...]:
        return tuple(self._bindings.get((vhost, exchange), ()))

    def message_keys(self, queue: Queue) -> tuple[str, ...]:
        keys = {queue.name}
        for binding in self._bound_to.get(queue.key, ()):
            exchange = self._exchanges.get((queue.vhost, binding.source))
            keys.add(binding.routing_key if exchange and exchange.type in ("direct", "topic") else "#")
        return tuple(sorted(keys))

    @cached_property
    def _named_by_dead_letters(self) -> set[Place]:
        """Queues into which others dead-letter by their name, through the default exchange."""
        named = (each for each in self._view.queues if each.setting("dead-letter-exchange") == "")
        return {(each.vhost, str(each.setting("dead-letter-routing-key"))) for each in named}

    @cached_property
    def _bound_to(self) -> dict[Place, list[Binding]]:
        """Bindings that lead to each queue, but for those of the default exchange."""
        found: dict[Place, list[Binding]] = defaultdict(list)
        for binding in self._view.bindings or ():
            if binding.destination_type == "queue" and binding.source:
                found[(binding.vhost, binding.destination)].append(binding)
        return found

    @cached_property
    def dead_letter_targets(self) -> frozenset[Place]:
        found: set[Place] = set()
        for queue in self._view.queues:
            if queue.setting("dead-letter-exchange") is not None and not self.is_delay(queue):
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
            # An unknown key may or may not match a binding, so follow the alternate exchange too.
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
        """Return the bindings of one exchange that match a key; empty without such an exchange, None if unknown."""
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
        """Return the alternate exchange as a list of at most one name; None if unknown."""
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
        return {queue.key for queue in self._view.every_queue}

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
        """Patterns with wildcards of each exchange."""
        found = {place: [key for key in by_key if _is_wild(key)] for place, by_key in self._bindings.items()}
        return {place: patterns for place, patterns in found.items() if patterns}


def _is_wild(key: str) -> bool:
    return "*" in key or "#" in key
