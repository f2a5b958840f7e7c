"""Where queues send their dead letters, as far as arguments, policies and bindings tell. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

COLUMNS = ("vhost", "name", "arguments", "effective_policy", "messages_ready")
BINDING_COLUMNS = ("vhost", "source", "destination", "destination_type", "routing_key")


@dataclass(frozen=True, slots=True)
class DeadLetterRoute:
    """One step of a dead letter.

    Attributes:
        exchange: "" is the default exchange.
        target: a queue; None where no queue is known to get it.
        why: why there is none; "" where there is one.
    """

    vhost: str
    queue: str
    exchange: str
    target: str | None
    why: str = ""


def paths(queues: pd.DataFrame, bindings: pd.DataFrame | None) -> tuple[DeadLetterRoute, ...]:
    """Every step from a queue with a dead-letter exchange to the queues behind it, by vhost and queue.

    Args:
        queues: columns of `COLUMNS`.
        bindings: columns of `BINDING_COLUMNS`; None where they are not known.
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
            found += _steps(vhost, name, str(exchange), key, names, None if bindings is None else bound)
    return tuple(sorted(found, key=lambda it: (it.vhost, it.queue, it.target or "")))


def setting(arguments: Mapping[str, Any] | None, policy: Mapping[str, Any] | None, name: str) -> Any:
    """A setting of a queue: its argument, or else its policy's."""
    argument = (arguments or {}).get(f"x-{name}")
    return (policy or {}).get(name) if argument is None else argument


def _steps(
    vhost: str,
    queue: str,
    exchange: str,
    key: Any,
    names: set[tuple[str, str]],
    bound: Mapping[tuple[str, str], list[str]] | None,
) -> Iterator[DeadLetterRoute]:
    if exchange == "":
        # By the default exchange, to the queue that the routing key names: the message's own, where none is set.
        if key is None:
            yield DeadLetterRoute(
                vhost, queue, exchange, None, "to the queue that each message's own routing key names"
            )
        elif (vhost, key) in names:
            yield DeadLetterRoute(vhost, queue, exchange, key)
        else:
            yield DeadLetterRoute(vhost, queue, exchange, None, f"there is no queue {key!r}: they are lost")
    elif bound is None:
        yield DeadLetterRoute(vhost, queue, exchange, None, "bindings are not known")
    else:
        targets = sorted(set(bound.get((vhost, exchange), ())))
        for target in targets:
            yield DeadLetterRoute(vhost, queue, exchange, target)
        if not targets:
            yield DeadLetterRoute(vhost, queue, exchange, None, "nothing is bound to this exchange: they are lost")
