"""stream-deduplication: a stream discards messages of a named publisher as duplicates, and confirms them.

A publisher of the stream protocol with a name (reference) gives each message a publishing id. The broker stores only
messages whose id is higher than the last one of that name, and confirms the others as well. A client that begins with
low ids again after a restart loses what it publishes. The broker counts what it confirmed; a stream without retention
keeps everything that was stored, so its length tells how much that was.
Source: https://www.rabbitmq.com/docs/streams#deduplication; seen on 4.3.6
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from ackscope.streams import StreamClients, StreamPublisher
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.queues._shared.queue import certainty, queue_refs, queue_subject
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "stream-deduplication"

_PUBLISHERS = "/api/stream/publishers"
_LEAST = 50
_SHARE = 0.5
"""Minimum share of the confirmed messages that were not stored. A client that repeats some after a restart has less."""
_LOOK = 60.0


@dataclass(frozen=True, slots=True)
class _Discarded:
    """What named publishers of a stream published in a period, and how much it grew at most."""

    publishers: tuple[StreamPublisher, ...]
    confirmed: int
    stored: int
    readings: Series[StreamClients]

    @property
    def messages(self) -> int:
        return self.confirmed - self.stored


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream without retention that has named publishers."""
    readings = last(view.window.readings("streams"), _LOOK)
    named = {(each.vhost, each.queue) for seen in readings for each in seen.value.publishers or () if each.reference}
    for queue in view.queues if named else ():
        has_retention = any(queue.setting(name) is not None for name in ("max-age", "max-length-bytes"))
        if queue.type != "stream" or queue.key not in named or has_retention:
            continue
        # The longest period in which most was discarded; it began later than the first reading.
        found = (_discarded(view, queue, readings[start:]) for start in range(len(readings) - 1))
        longest = next((each for each in found if each is not None), None)
        if longest is not None and span(longest.readings) >= view.limits(queue).early:
            yield _finding(view, queue, longest)


def _discarded(view: View, queue: Queue, readings: Series[StreamClients]) -> _Discarded | None:
    """Return what a stream confirmed and did not store; None if that is not proven."""
    begin, end = readings[0].at.mono, readings[-1].at.mono
    history = view.history(queue)
    known = [(seen.at.mono, seen.value.messages) for seen in history if seen.value.messages is not None]
    before = [length for at, length in known if at <= begin]
    if not before or not any(at >= end for at, _ in known):
        return None
    stored = known[-1][1] - before[-1]
    publishers: dict[tuple[str, int], StreamPublisher] = {}
    confirmed = 0
    for older, newer in pairwise(readings):
        earlier = {(each.connection_name, each.number): each for each in older.value.publishers or ()}
        for each in newer.value.publishers or ():
            if (each.vhost, each.queue) != queue.key:
                continue
            key = (each.connection_name, each.number)
            previous = earlier.get(key)
            confirmed += max(0, (each.confirmed or 0) - ((previous.confirmed or 0) if previous else 0))
            publishers[key] = each
    # The counters of publishers and the length of the stream are refreshed at different times.
    unsure = view.limits(queue).queues.loss_skew * confirmed / max(1.0, span(readings))
    if confirmed - stored < max(_LEAST, unsure, _SHARE * confirmed) or stored < 0:
        return None
    writers = tuple(each for each in publishers.values() if each.reference)
    return _Discarded(writers, confirmed, stored, readings)


def _finding(view: View, queue: Queue, found: _Discarded) -> Finding:
    seconds = span(found.readings)
    severity = Severity.WARNING if seconds >= _LOOK else Severity.INFO
    connections = seen_connections(view)
    known = [connections.get(each.connection_name) for each in found.publishers]
    clients = sorted({each.client_name for each in known if each is not None and each.client_name})
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=found.readings[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "references": sorted({each.reference for each in found.publishers if each.reference}),
            "clients": clients,
            "discarded": found.messages,
            "confirmed": found.confirmed,
            "stored": found.stored,
            "seconds": seconds,
            "warning_after_seconds": _LOOK,
        },
        evidence=(
            Evidence(
                key="confirmed", value=found.confirmed, unit=Unit.MESSAGES, source=source(_PUBLISHERS, "confirmed")
            ),
            Evidence(key="stored", value=found.stored, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
        ),
        involved=Involved(
            queues=queue_refs((queue,)),
            connections=tuple(sorted({each.connection_name for each in found.publishers})),
            clients=tuple(clients),
        ),
        certainty=certainty(severity, seconds, _LOOK),
        seen_seconds=seconds,
    )
