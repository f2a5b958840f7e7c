"""binding-keys-disjoint: bindings from exchange to exchange to queue, whose keys no message can match all.

A message keeps its routing key on its way through several exchanges. So a queue gets nothing over a path on which two
bindings have keys that no routing key matches both. The first exchange confirms such messages, and often routes them
to other queues as well, so no counter shows a loss. An exchange to which clients publish, or which gets what others
cannot route, may get any key; only exchanges that get messages from other exchanges alone are judged. Header
exchanges and those of plugins do not go by the key. A message with the headers CC or BCC has several keys.
Source: https://www.rabbitmq.com/docs/e2e, https://www.rabbitmq.com/docs/sender-selected
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from ackscope.findings import Certainty, Evidence, ExchangeRef, Finding, Involved, Severity, Subject, source
from ackscope.protocols import AMQP10, MQTT, native_protocol
from ackscope.snapshot import Queue
from ackscope.topology import Binding, Exchange
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.purpose import DELIVERED
from diagnosis.routes import matches, overlap
from diagnosis.rules.publishers._shared.lossy_exchanges import alternate_of
from diagnosis.series import count

NAME = "binding-keys-disjoint"

Place = tuple[str, str]
Path = tuple[Binding, ...]

_MOST = 200
"""Paths, whole and in part, that are followed from a queue; where there are more, it is not judged. Exchanges that are
bound to one another in circles have very many.
"""


@dataclass(frozen=True, slots=True)
class DeadPath:
    """A path to a queue that no message can take.

    Attributes:
        first, second: bindings on it whose keys no routing key matches both, the one nearer to the publisher first.
        begin: the exchange where it begins.
    """

    queue: Queue
    first: Binding
    second: Binding
    begin: Place


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the queues that have a consumer and have never got a message."""
    if not view.bindings or not any(each.destination_type == "exchange" for each in view.bindings):
        return
    waiting = [
        each
        for each in view.queues
        if each.consumers and not each.messages and not count(each.stats, "publish", *DELIVERED)
    ]
    if not waiting:
        return
    topology = _Topology(view)
    dead: dict[Place, list[DeadPath]] = defaultdict(list)
    for queue in waiting:
        for path in topology.dead_paths(queue):
            dead[path.second.vhost, path.second.source].append(path)
    for place, paths in sorted(dead.items()):
        yield _finding(view, place, paths)


class _Topology:
    """The exchanges of a view and the bindings that lead to them."""

    def __init__(self, view: View) -> None:
        self._exchanges: Mapping[Place, Exchange] = {each.key: each for each in view.exchanges}
        self._into: dict[tuple[str, str, str], list[Binding]] = defaultdict(list)
        for binding in view.bindings or ():
            self._into[binding.vhost, binding.destination_type, binding.destination].append(binding)
        # Exchanges that get messages with any key otherwise than by bindings and from clients.
        self._others = {(each.vhost, alternate_of(view, each)) for each in view.exchanges}
        self._others |= {(each.vhost, each.setting("dead-letter-exchange")) for each in view.all_queues}

    def dead_paths(self, queue: Queue) -> list[DeadPath]:
        """Return one for each path to a queue; nothing if a message can take one of them, or if that is unknown.

        A path leads to the queue from an exchange where messages with any key may begin. It is followed backwards.
        """
        found: list[DeadPath] = []
        following: list[Path] = [(binding,) for binding in self._into[queue.vhost, "queue", queue.name]]
        followed = 0
        while following:
            path = following.pop()
            followed += 1
            if followed > _MOST:
                return []
            begin = (queue.vhost, path[0].source)
            before = self._into[queue.vhost, "exchange", path[0].source]
            if self._begins(begin) or not before:
                pair = next((pair for pair in combinations(path, 2) if self._disjoint(*pair)), None)
                if pair is None:
                    return []
                found.append(DeadPath(queue, *pair, begin))
            following += [(each, *path) for each in before if each not in path]
        return found

    def _begins(self, place: Place) -> bool:
        exchange = self._exchanges.get(place)
        return exchange is None or bool(exchange.stats.publish_in) or place in self._others

    def _disjoint(self, first: Binding, second: Binding) -> bool:
        """Return whether no routing key matches both bindings."""
        types = [self._type(each) for each in (first, second)]
        keys = first.routing_key, second.routing_key
        if types == ["topic", "topic"]:
            return not overlap(*keys)
        if types == ["direct", "direct"]:
            return keys[0] != keys[1]
        if types == ["topic", "direct"]:
            return not matches(*keys)
        return types == ["direct", "topic"] and not matches(keys[1], keys[0])

    def _type(self, binding: Binding) -> str | None:
        exchange = self._exchanges.get((binding.vhost, binding.source))
        if exchange is None or exchange.type != "x-delayed-message":
            return exchange.type if exchange else None
        return str(exchange.arguments.get("x-delayed-type"))


def _finding(view: View, place: Place, paths: list[DeadPath]) -> Finding:
    begins, queues = sorted({each.begin for each in paths}), {each.queue.key: each.queue for each in paths}
    busy = [name for vhost, name in begins if _carries(view, (vhost, name))]
    # Messages of such clients are counted at no exchange.
    uncounted = any(
        each.vhost == place[0] and native_protocol(each.protocol) in (AMQP10, MQTT) for each in view.connections
    )
    names = dict.fromkeys((place, *((place[0], each.first.source) for each in paths), *begins))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if busy and not uncounted else Severity.INFO,
        subject=Subject(kind="exchange", name=place[1], vhost=place[0]),
        since=None,
        facts={
            "vhost": place[0],
            "exchange": place[1],
            "queues": sorted(each.name for each in queues.values()),
            "busy": list(busy),
            "uncounted": uncounted,
            "paths": [
                {
                    "queue": each.queue.name,
                    "first_exchange": each.first.source,
                    "first_key": each.first.routing_key,
                    "leads_to": each.first.destination,
                    "second_key": each.second.routing_key,
                    "destination_type": each.second.destination_type,
                    "destination": each.second.destination,
                }
                for each in paths
            ],
        },
        certainty=Certainty.LIKELY,
        evidence=(
            Evidence(key="paths", value=len(paths), source=source("/api/bindings", "routing_key")),
            Evidence(key="arrived", value=0, source=source("/api/queues", "message_stats", "messages")),
            Evidence(
                key="published",
                value=len(busy),
                source=source("/api/exchanges", "message_stats.publish_in"),
            ),
        ),
        involved=Involved(
            exchanges=tuple(ExchangeRef(*each) for each in names),
            queues=tuple(map(queue_ref, queues.values())),
        ),
    )


def _carries(view: View, place: Place) -> bool:
    """Return whether messages were published to an exchange between the readings."""
    counts = {
        each.stats.publish_in or 0
        for seen in view.window.readings("exchanges")
        for each in seen.value
        if each.key == place
    }
    return len(counts) > 1


def _only_into_them(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the exchanges of a finding all of whose bindings lead to the others."""
    involved = {(each.vhost, each.name) for each in finding.involved.exchanges}
    reached: dict[Place, set[tuple[str, Place]]] = defaultdict(set)
    for each in view.bindings or ():
        reached[each.vhost, each.source].add((each.destination_type, (each.vhost, each.destination)))
    inner = {("exchange", place) for place in involved}
    return (place for place in involved if reached[place] and reached[place] <= inner)


def _exchange(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "exchange" else ()


ROUTES_ONLY_THERE = Relation(_only_into_them, _exchange)
"""The cause are bindings in a row; the effect is about an exchange that leads nowhere else."""
