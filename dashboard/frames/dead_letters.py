"""Dead-letter routes of queues, from arguments, policies and bindings. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

COLUMNS = ("vhost", "name", "arguments", "effective_policy", "messages_ready")
_APART = 3
"""Queues with the same routes that have a box each."""
BINDING_COLUMNS = ("vhost", "source", "destination", "destination_type", "routing_key")


@dataclass(frozen=True, slots=True)
class DeadLetterRoute:
    """The route of dead letters from one queue to one other.

    Attributes:
        exchange: the dead-letter exchange; "" is the default exchange.
        target: the queue that receives the dead letters; None if none is known.
        why: why there is no target; "" if there is one.
    """

    vhost: str
    queue: str
    exchange: str
    target: str | None
    why: str = ""


def routes(queues: pd.DataFrame, bindings: pd.DataFrame | None) -> tuple[DeadLetterRoute, ...]:
    """The routes of all queues with a dead-letter exchange, sorted by vhost and queue.

    Args:
        queues: columns of `COLUMNS`.
        bindings: columns of `BINDING_COLUMNS`; None if they are not known.
    """
    names = set(zip(queues["vhost"], queues["name"], strict=True))
    bound: dict[tuple[str, str], list[str]] = {}
    if bindings is not None:
        for vhost, source, target, kind in bindings[["vhost", "source", "destination", "destination_type"]].to_numpy():
            if kind == "queue":
                bound.setdefault((vhost, source), []).append(target)
    found: list[DeadLetterRoute] = []
    for vhost, name, arguments, policy in queues[["vhost", "name", "arguments", "effective_policy"]].to_numpy():
        exchange = setting(arguments, policy, "dead-letter-exchange")
        if exchange is not None:
            key = setting(arguments, policy, "dead-letter-routing-key")
            found += _routes_of(vhost, name, str(exchange), key, names, None if bindings is None else bound)
    return tuple(sorted(found, key=lambda it: (it.vhost, it.queue, it.target or "")))


def lost_first(routes: Iterable[DeadLetterRoute]) -> tuple[DeadLetterRoute, ...]:
    """The routes without a target before the others, else in their order: only some of many are shown."""
    return tuple(sorted(routes, key=lambda it: it.target is not None))


def sources(routes: Sequence[DeadLetterRoute]) -> dict[tuple[str, str], str]:
    """(vhost, queue) -> the name of its box in a picture: many queues with the same routes share a box."""
    ways: dict[tuple[str, str], list[tuple[str, str | None, str]]] = {}
    for it in routes:
        ways.setdefault((it.vhost, it.queue), []).append((it.exchange, it.target, it.why))
    alike: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for (vhost, queue), mine in ways.items():
        alike.setdefault((vhost, *mine), []).append((vhost, queue))
    found = {}
    for queues in alike.values():
        for place in queues:
            vhost, queue = place if len(queues) <= _APART else queues[0]
            more = f" and {len(queues) - 1} more" if len(queues) > _APART else ""
            found[place] = f"{queue}{more} ({vhost})"
    return found


def setting(arguments: Mapping[str, Any] | None, policy: Mapping[str, Any] | None, name: str) -> Any:
    """A setting of a queue: from its arguments, or else from its policy."""
    argument = (arguments or {}).get(f"x-{name}")
    return (policy or {}).get(name) if argument is None else argument


def _routes_of(
    vhost: str,
    queue: str,
    exchange: str,
    key: Any,
    names: set[tuple[str, str]],
    bound: Mapping[tuple[str, str], list[str]] | None,
) -> Iterator[DeadLetterRoute]:
    if exchange == "":
        # The default exchange routes to the queue named by the routing key: the message's own, if none is set.
        if key is None:
            yield DeadLetterRoute(vhost, queue, exchange, None, "to the queue named by each message's own routing key")
        elif (vhost, key) in names:
            yield DeadLetterRoute(vhost, queue, exchange, key)
        else:
            yield DeadLetterRoute(vhost, queue, exchange, None, f"queue {key!r} does not exist: dead letters are lost")
    elif bound is None:
        yield DeadLetterRoute(vhost, queue, exchange, None, "bindings are not known")
    else:
        targets = sorted(set(bound.get((vhost, exchange), ())))
        for target in targets:
            yield DeadLetterRoute(vhost, queue, exchange, target)
        if not targets:
            yield DeadLetterRoute(vhost, queue, exchange, None, "no queue is bound to it: dead letters are lost")
