"""binding-leak: the bindings of an exchange only become more, or are so many that their number alone costs.

The law: a client that binds a queue for something that ends also unbinds it. If bindings come with new queues, those
explain them; if the same queues get ever more, nobody unbinds. The list of bindings is kept up to 20,000; above, only
the number of each exchange is known.
Source: https://www.rabbitmq.com/docs/exchanges#headers; https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Finding,
    Involved,
    QueueRef,
    Severity,
    Subject,
    source,
)
from ackscope.topology import Bindings, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.routes import Place
from diagnosis.series import grows_at_once, last, span
from diagnosis.window import Series, Timestamped

NAME = "binding-leak"

_KEYS = 5
_WITH_QUEUES = 0.5
"""New destinations per new binding from which on they explain the new bindings."""
_LATEST = 3
"""Divisor of the time of growth: its latest part must show growth, too."""

_LEAST_RISES = 2
"""Readings with a rise: what is bound at once is no growth. One look has only two readings."""

_Numbers = Series[int]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the number of bindings of every exchange, and its change."""
    readings: Series[Bindings] = view.window.readings("bindings")
    if not readings or not view.fresh("bindings"):
        return
    limits, exchanges = view.thresholds.topology, {each.key: each for each in view.exchanges}
    for key, total in sorted(readings[-1].value.counts.items()):
        exchange = exchanges.get(key)
        if not key[1] or total < limits.bindings_least:
            # Every queue has one binding to the default exchange.
            continue
        run = _rising(tuple(Timestamped(seen.at, seen.value.counts.get(key, 0)) for seen in readings))
        gained = run[-1].value - run[0].value if run else 0
        many = total >= (limits.bindings_headers if exchange and exchange.type == "headers" else limits.bindings_many)
        if gained >= limits.bindings_gained and span(run) >= view.thresholds.early and not _with_queues(view, key, run):
            yield _finding(view, key, exchange, total, run)
        elif many:
            yield _finding(view, key, exchange, total, ())


def _rising(numbers: _Numbers) -> _Numbers:
    """Return the readings since the number last fell, from its first rise, if it still rises; else ()."""
    start = len(numbers) - 1
    while start > 0 and numbers[start - 1].value <= numbers[start].value:
        start -= 1
    rises = [place for place, (older, newer) in enumerate(pairwise(numbers[start:])) if newer.value > older.value]
    if not rises or (len(rises) < _LEAST_RISES and len(numbers) > _LEAST_RISES):
        return ()
    run = numbers[start + rises[0] :]
    if len(numbers) > _LEAST_RISES and grows_at_once([seen.value for seen in run]):
        # What is bound at once, and then replaced, is no leak. What becomes more after a first stock is one.
        run = numbers[start + rises[1] :]
        if len(rises) <= _LEAST_RISES or grows_at_once([seen.value for seen in run]):
            return ()
    before = last(run[:-1], span(run) / _LATEST)[0] if len(run) > _LATEST else run[0]
    return run if before.value < run[-1].value else ()


def _with_queues(view: View, key: Place, run: _Numbers) -> bool:
    """Return whether the new bindings came with new queues."""
    gained = run[-1].value - run[0].value
    then = next(seen for seen in view.window.readings("bindings") if seen.at == run[0].at).value.listed
    if then is not None and view.bindings is not None:
        before = {(each.destination_type, each.destination) for each in then if (each.vhost, each.source) == key}
        now = {(each.destination_type, each.destination) for each in view.bindings if (each.vhost, each.source) == key}
        return len(now - before) >= _WITH_QUEUES * gained
    totals = [
        each.value.queues
        for each in view.window.readings("overview")
        if each.at.since(run[0].at) >= -view.thresholds.interval
    ]
    first, final = (totals[0], totals[-1]) if totals else (None, None)
    return first is None or final is None or final - first >= _WITH_QUEUES * gained


def _finding(view: View, key: Place, exchange: Exchange | None, total: int, run: _Numbers) -> Finding:
    limits, seconds = view.thresholds.topology, span(run)
    gained = run[-1].value - run[0].value if run else None
    late = gained is not None and seconds >= limits.bindings_for
    own = [each for each in view.bindings or () if (each.vhost, each.source) == key]
    places = Counter((each.destination_type, each.destination) for each in own)
    top = min(places, key=lambda each: (-places[each], each), default=None)
    keys = [each.routing_key for each in own if (each.destination_type, each.destination) == top][-_KEYS:]
    queue = view.queue(key[0], top[1]) if top is not None and top[0] == "queue" else None
    links = view.links(queue) if queue is not None else ()
    clients = sorted({name for link in links if (name := client_name(link.connection)) is not None})
    evidence = [Evidence(key="total", value=total, source=source("/api/bindings", "source"))]
    if gained is not None:
        evidence.insert(0, Evidence(key="growth", value=gained, source=source("/api/bindings", "source")))
    if top is not None:
        evidence.append(
            Evidence(
                key="most",
                value=places[top],
                source=source("/api/bindings", "destination", "routing_key"),
                facts={"destination": top[1], "destination_type": top[0], "keys": list(keys)},
            )
        )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="exchange", name=key[1], vhost=key[0]),
        since=run[0].at.iso() if run else None,
        facts={
            "vhost": key[0],
            "exchange": key[1],
            "exchange_type": exchange.type if exchange else None,
            "bindings": total,
            "gained": gained,
            "over_seconds": seconds,
            "growth_rate": gained / seconds if gained is not None and seconds else None,
            "destinations": len(places) if own else None,
            "destination": top[1] if top else None,
            "destination_type": top[0] if top else None,
            "destination_bindings": places[top] if top else None,
            "clients": clients,
            "warning_after_seconds": limits.bindings_for,
            "limit": limits.bindings_headers if exchange and exchange.type == "headers" else limits.bindings_many,
        },
        certainty=Certainty.EARLY if gained is not None and not late else Certainty.LIKELY,
        seen_seconds=seconds if run else None,
        evidence=tuple(evidence),
        involved=Involved(
            exchanges=(ExchangeRef(*key),),
            queues=(QueueRef(key[0], top[1]),) if top is not None and top[0] == "queue" else (),
            clients=tuple(clients),
        ),
    )
