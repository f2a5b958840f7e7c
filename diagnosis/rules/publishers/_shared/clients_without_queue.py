"""Clients that ask for a queue that does not exist (404), while an exchange without bindings loses what it receives.

A queue that is not durable goes with its node, and its bindings with it. Its client that only consumes then gets an
error each time. Both belong together where their names share a word, or where a start of the node explains both and no
other exchange lacks its bindings.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Fact, Finding
from ackscope.topology import Exchange
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import Relation, View
from diagnosis.memo import per_view
from diagnosis.relations import SAME_CONNECTION
from diagnosis.rules.clients._shared.not_found import NotFound, not_found
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in

ClientWithoutQueue = tuple[ChurnLoop, NotFound]
"""A client that loops, and what it asks for."""

_RECENT = 3600.0
"""Seconds since the start of a node within which it is named as a reason."""
_LETTERS = 3
"""Least letters of a word that two names share."""
_FEW_NAMES = 2
"""Names that may all begin with the same word, and yet belong together."""


def clients_without_queue(view: View, exchange: Exchange, bindings: int | None) -> tuple[ClientWithoutQueue, ...]:
    """Return the clients that probably ask for a queue that was bound to an exchange without bindings."""
    if not exchange.name or bindings != 0:
        return ()
    found = [each for each in per_view(view, _clients) if (each[0].connection.vhost or "/") == exchange.vhost]
    if not found:
        return ()
    common = per_view(view, _common_words).get(exchange.vhost, frozenset())
    near = [each for each in found if _words(exchange.name, common) & _words(_names(*each), common)]
    if near or restarted_seconds(view) is None or _unbound(view, exchange.vhost) != [exchange.name]:
        return tuple(near)
    return tuple(found)


def share_word(view: View, vhost: str, one: str, others: Iterable[str]) -> bool:
    """Return whether a name has a word of some others that few names of the virtual host have."""
    common = per_view(view, _common_words).get(vhost, frozenset())
    return bool(_words(one, common) & _words(" ".join(others), common))


def restarted_seconds(view: View) -> float | None:
    """Return how long ago a node started, if that may be why a queue is missing; None if no node did lately."""
    uptimes = [each.uptime_seconds for each in view.nodes if each.running and each.uptime_seconds is not None]
    return min(uptimes) if uptimes and min(uptimes) < _RECENT else None


def without_queue_facts(
    view: View, exchange: Exchange, bindings: int | None, found: Iterable[ClientWithoutQueue]
) -> dict[str, Fact]:
    """Return these clients and a recent start of a node as facts.

    Returns:
        `{"clients_without_queue": [{"client", "connection", "queue_bytes", "queues", "cycle_rate"}],
        "restarted_seconds"}`.
    """
    fresh = bindings == 0 and exchange.name and not exchange.stats.publish_out
    return {
        "clients_without_queue": [
            {
                "client": closing.client,
                "connection": closing.connection.name,
                "queue_bytes": missing.queue_bytes,
                "queues": list(missing.queues),
                "cycle_rate": closing.rate,
            }
            for closing, missing in found
        ],
        "restarted_seconds": restarted_seconds(view) if fresh else None,
    }


def _clients(view: View) -> tuple[ClientWithoutQueue, ...]:
    found = []
    for closing in churn_loops(view):
        if closing.whole or closing.lasts < view.thresholds.early:
            continue
        missing = not_found(view, closing)
        if missing is not None and missing.queue_first:
            found.append((closing, missing))
    return tuple(found)


def _unbound(view: View, vhost: str) -> list[str]:
    """Return the exchanges of a virtual host that receive messages and have no binding."""
    bound = {(each.vhost, each.source) for each in view.bindings or ()}
    return [
        each.name
        for each in view.exchanges
        if each.vhost == vhost
        and each.name
        and each.key not in bound
        and messages_in(exchange_histories(view)[each.key]) > 0
    ]


def _names(closing: ChurnLoop, missing: NotFound) -> str:
    return " ".join((closing.connection.client_name or "", *missing.queues))


def _words(name: str, common: frozenset[str] = frozenset()) -> set[str]:
    return {each for each in re.findall(r"[^\W_]+", name.casefold()) if len(each) >= _LETTERS} - common


def _common_words(view: View) -> dict[str, frozenset[str]]:
    """Return by virtual host the words that most names have, such as that of the company."""
    names: dict[str, list[str]] = defaultdict(list)
    for queue in view.every_queue:
        names[queue.vhost].append(queue.name)
    for exchange in view.exchanges:
        if not exchange.name.startswith("amq."):
            names[exchange.vhost].append(exchange.name)
    return {vhost: _words_of_most(each) for vhost, each in names.items()}


def _words_of_most(names: list[str]) -> frozenset[str]:
    words = Counter(word for name in names for word in _words(name))
    most = max(_FEW_NAMES, len(names) / 2)
    return frozenset(word for word, number in words.items() if number > most)


def _connections(_view: View, finding: Finding) -> Iterator[Hashable]:
    known = finding.facts.get("clients_without_queue")
    for each in known if isinstance(known, list) else ():
        if isinstance(each, dict):
            yield each["connection"]


ASKS_FOR_ITS_QUEUE = Relation(_connections, SAME_CONNECTION.of_other)
"""The cause is an exchange without bindings; the consequence is about a client that asks for a queue of it."""
