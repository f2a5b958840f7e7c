"""hash-exchange-uneven: an exchange that divides its messages by a hash gives nearly all of them to one queue.

Messages with the same key have the same hash. Those without the header that is hashed all count as one key. The law:
one queue gets nearly all, although by the weights of the bindings it should get clearly less. Other bindings may feed a
queue as well, so only exchanges are judged none of whose queues has another one.
Source: https://github.com/rabbitmq/rabbitmq-server/tree/main/deps/rabbitmq_consistent_hash_exchange
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from ackscope.findings import Certainty, Evidence, ExchangeRef, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.routes import bound_exchanges
from diagnosis.rules.consumers._shared.hash_exchanges import HashExchange, hash_exchanges
from diagnosis.series import delta, readings_since, readings_until, span
from diagnosis.window import Series

NAME = "hash-exchange-uneven"

_EXPECTED = 0.6
"""Largest share by weight of a queue that is judged: one that should get most of the messages may get nearly all."""
_HEADER, _PROPERTY = "hash-header", "hash-property"


@dataclass(frozen=True, slots=True)
class _Uneven:
    """One queue that gets nearly all messages of an exchange.

    Attributes:
        history: the readings in which it does.
        received: messages of all queues of the exchange in that time.
        got: messages of this queue.
        expected: its share by weight.
        idle: other queues with a consumer that got none.
    """

    queue: Queue
    history: Series[Queue]
    received: int
    got: int
    expected: float
    idle: tuple[Queue, ...]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every exchange that divides its messages among two or more queues."""
    for each in hash_exchanges(view):
        found = _uneven(view, each)
        if found is not None:
            yield _finding(view, each, found)


def _uneven(view: View, exchange: HashExchange) -> _Uneven | None:
    queues = [queue for key in exchange.queues if (queue := view.queue(*key)) is not None]
    if len(queues) < len(exchange.queues) or any(bound_exchanges(view, it) != {exchange.name} for it in queues):
        return None
    limits = view.thresholds.topology
    histories = {queue.key: view.history(queue) for queue in queues}
    busiest = max(queues, key=lambda it: (delta(histories[it.key], "publish"), it.key))
    expected = exchange.weights[busiest.key] / (sum(exchange.weights.values()) or 1)
    if expected > _EXPECTED:
        return None
    # An even time before must not hide what goes on now.
    times = [seen.at.mono for seen in histories[busiest.key]]
    for begin, following in pairwise(times):
        first = _gained(histories, begin, following)
        gained = _gained(histories, begin, inf)
        received, got = sum(gained.values()), gained[busiest.key]
        if (
            received
            and got >= limits.uneven_share * received
            and first[busiest.key] >= limits.uneven_share * sum(first.values())
        ):
            history = readings_since(histories[busiest.key], begin)
            if span(history) < view.thresholds.early or received < limits.uneven_messages:
                return None
            idle = tuple(it for it in queues if it.consumers and not gained[it.key])
            return _Uneven(busiest, history, received, got, expected, idle)
    return None


def _gained(histories: dict[tuple[str, str], Series[Queue]], begin: float, end: float) -> dict[tuple[str, str], int]:
    """Return how many messages each queue got between two times (monotonic)."""
    return {
        key: delta(readings_until(readings_since(series, begin), end), "publish") for key, series in histories.items()
    }


def _finding(view: View, exchange: HashExchange, found: _Uneven) -> Finding:
    arguments, seconds = exchange.exchange.arguments, span(found.history)
    whole = view.history(found.queue)
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="exchange", name=exchange.name, vhost=exchange.exchange.vhost),
        since=found.history[0].at.iso(),
        facts={
            "exchange": exchange.name,
            "exchange_type": exchange.exchange.type,
            "vhost": exchange.exchange.vhost,
            "queue": queue_facts(found.queue),
            "queues": len(exchange.queues),
            "idle": [queue.name for queue in found.idle],
            "share": found.got / found.received,
            "expected_share": found.expected,
            "received": found.received,
            "got": found.got,
            "over_seconds": seconds,
            "header": str(arguments[_HEADER]) if arguments.get(_HEADER) else None,
            "property": str(arguments[_PROPERTY]) if arguments.get(_PROPERTY) else None,
            "was_even": len(found.history) < len(whole),
        },
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="got",
                value=found.got,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(key="bound", value=len(exchange.queues), source=source("/api/bindings", "routing_key")),
        ),
        involved=Involved(
            exchanges=(ExchangeRef(exchange.exchange.vhost, exchange.name),), queues=(queue_ref(found.queue),)
        ),
    )
