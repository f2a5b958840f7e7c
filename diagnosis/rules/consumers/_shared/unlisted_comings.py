"""Queues whose consumers come and go, where the broker lists no clients: their figures and the churn counters tell.

A consumer that stays and requeues redelivers as much. It neither takes the number of consumers down and up again, nor
does it need channels that end: what comes back at the end of a channel is no more than what consumers held. A loop of
another application may close channels meanwhile, so one of these must be seen, too: the number of consumers rose
again, twice; or redeliveries and the loop began together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Overview, Queue
from diagnosis.churn import churn_increase
from diagnosis.contract import View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.probe_traffic import probe_traffic
from diagnosis.rules.cluster._shared.link_flow import circulations
from diagnosis.rules.consumers._shared.comings import LASTING, comings_without_acks, fruitless_comings
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.consumers._shared.redelivery_rounds import (
    REFRESH_SECONDS,
    deliveries,
    redelivered_partly,
    redelivery_rounds,
)
from diagnosis.series import delta, nearest, readings_since, readings_until, span
from diagnosis.window import Series

_FEWEST = 3
"""Least channels or connections that ended: a deployment ends each once."""
_GENERATIONS = 3
"""How many for each consumer must have ended before it is a warning: each was replaced twice."""
_MIN_SECONDS = 20.0
"""Least seconds over which consumers must have come back before it is a warning."""
_HELD = 2.5
"""Times what was held at a reading that one end may return: consumers may hold more between two readings."""
_RISES = 2
"""Times that the number of consumers must have risen again."""
_QUIET_SECONDS, _QUIET_SHARE = 60.0, 0.3
"""Seconds before a loop whose counters are compared with it, and the share of its pace that is quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedComings:
    """Readings of a queue to which messages come back because its consumers end.

    Attributes:
        rounds: the times that consumers came back and acknowledged nothing; None if others are acknowledged.
        ended: channels or connections of the cluster that ended meanwhile, without those of our own probes.
    """

    queue: Queue
    readings: Series[Queue]
    rounds: int | None
    ended: int

    @property
    def seconds(self) -> float:
        """Seconds that the readings cover."""
        return span(self.readings)

    def warns(self, after: float) -> bool:
        """Return whether a rolling restart would be over."""
        if self.rounds is not None:
            return self.rounds >= LASTING and self.seconds >= _MIN_SECONDS
        most = max(each.value.consumers or 0 for each in self.readings)
        return self.seconds >= after and self.ended >= _GENERATIONS * max(1, most)


def unlisted_comings(view: View, rule: str) -> Iterator[Finding]:
    """Yield the finding for each queue whose consumers come and go, if the broker lists no clients."""
    if not view.lists_no_clients:
        return
    for queue in view.queues:
        found = None if queue.type == "stream" or queue.exclusive else _comings(view, queue)
        if found is not None:
            yield _finding(view, rule, found)


def _comings(view: View, queue: Queue) -> UnlistedComings | None:
    if not queue.stats.redeliver:
        return None
    fruitless = fruitless_comings(view, queue)
    if fruitless:
        rounds = comings_without_acks(fruitless)
        return UnlistedComings(queue=queue, readings=fruitless, rounds=rounds, ended=_ended(view, fruitless))
    limits, history = view.limits(queue), view.history(queue)
    readings = redelivery_rounds(view, history, REFRESH_SECONDS)
    if span(readings) < limits.early:
        readings = redelivered_partly(view, history, limits.interval)
        if span(readings) < limits.consumers.requeue_mixed_for:
            return None
    if 2 * delta(readings, "get") >= delta(readings, "redeliver") or queue.key in circulations(view):
        return None
    every = readings_since(history, readings[0].at.mono)
    ended, held = _ended(view, readings), max(each.value.messages_unacked or 0 for each in every)
    if ended < _FEWEST or not 0 < delta(readings, "redeliver") <= _HELD * held * ended:
        return None
    if _rises(every) < _RISES and not _began_together(view, history, readings, ended / span(readings)):
        return None
    return UnlistedComings(queue=queue, readings=readings, rounds=None, ended=ended)


def _ended(view: View, readings: Series[Queue]) -> int:
    """Return how many channels or connections of the cluster came and went within some readings of a queue."""
    return _churned(view, readings[0].at, readings[-1].at)


def _churned(view: View, begin: Instant, end: Instant) -> int:
    overviews: Series[Overview] = view.window.readings("overview")
    first, last, own = nearest(overviews, begin), nearest(overviews, end), probe_traffic(view)
    seconds = last.at.since(first.at)

    def churned(what: str) -> int:
        return min(churn_increase(first.value, last.value, f"{what}_{word}") for word in ("created", "closed"))

    channels = churned("channel") - (own.closes + own.connects) * seconds
    return max(0, int(channels), int(churned("connection") - own.connects * seconds))


def _rises(history: Series[Queue]) -> int:
    """Return how many times the number of consumers rose."""
    return sum((newer.value.consumers or 0) > (older.value.consumers or 0) for older, newer in pairwise(history))


def _began_together(view: View, history: Series[Queue], readings: Series[Queue], pace: float) -> bool:
    """Return whether redeliveries began when channels began to end, and both were rare before."""
    begin = readings[0].at
    overviews = readings_until(view.window.readings("overview"), begin.mono)
    overviews = readings_since(overviews, begin.mono - _QUIET_SECONDS)
    if span(overviews) < view.thresholds.interval:
        return False
    before = readings_since(readings_until(history, begin.mono), begin.mono - _QUIET_SECONDS)
    returned = _QUIET_SHARE * delta(readings, "redeliver") / span(readings)
    if delta(before, "redeliver") > returned * span(before):
        return False
    return _churned(view, overviews[0].at, overviews[-1].at) <= _QUIET_SHARE * pace * span(overviews)


def _finding(view: View, rule: str, found: UnlistedComings) -> Finding:
    queue, readings, limits = found.queue, found.readings, view.limits(found.queue).consumers
    late = found.warns(limits.flapping_for)
    stopped = late and found.rounds is not None and found.seconds >= limits.flapping_for
    redelivered = delta(readings, "redeliver")
    delivered = deliveries(readings[-1].value) - deliveries(readings[0].value)
    nothing: dict[str, Fact] = dict.fromkeys(("channel_loop", "session", "over", "reread", "skipped"))
    return Finding(
        rule=rule,
        severity=Severity.CRITICAL if stopped else Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=readings[0].at.iso(),
        facts=nothing
        | {
            "queue": queue_facts(queue),
            "unlisted": True,
            "clients": [],
            "rounds": found.rounds,
            "ended": found.ended,
            "messages": queue.messages,
            "polled": False,
            "clean": False,
            "ready": queue.messages_ready or 0,
            "consumers_seen": 0,
            "max_at_once": max(each.value.consumers or 0 for each in readings),
            "changes": 0,
            "comparisons": 0,
            "watched_seconds": found.seconds,
            "redelivered": redelivered,
            "delivered": None if found.rounds is not None else delivered,
            "warning_after_seconds": limits.flapping_for,
        },
        evidence=tuple(_evidence(found, redelivered)),
        involved=Involved(queues=(queue_ref(queue),)),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=found.seconds,
    )


def _evidence(found: UnlistedComings, redelivered: int) -> Iterator[Evidence]:
    if found.rounds is not None:
        counters = source("/api/queues", "consumers", "message_stats.deliver")
        yield Evidence(key="rounds", value=found.rounds, source=counters)
    yield Evidence(
        key="acked",
        value=delta(found.readings, "ack"),
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.ack"),
    )
    counters = source("/api/queues", "message_stats.redeliver", "message_stats.deliver_get")
    key = "redelivered" if found.rounds is not None else "returned"
    yield Evidence(key=key, value=redelivered, unit=Unit.MESSAGES, source=counters)
    yield Evidence(
        key="ended",
        value=found.ended,
        source=source("/api/overview", "churn_rates.channel_closed", "churn_rates.connection_closed"),
    )
