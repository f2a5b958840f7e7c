"""slow-consumer (B03): consumers hold all they may and acknowledge, but more slowly than messages are published.

By Little's law, counters alone give the time for which consumers hold a message. If it is far above the round trip that
the probe measures, the handler is slow; otherwise see prefetch-too-small. Consumers that acknowledge their whole
prefetch at once, and nothing in between, probably collect a batch that is larger: then a larger prefetch helps.
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Evidence, Finding, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import unlisted_consumers, unread
from diagnosis.rules.consumers._shared.backlog_finding import backlog_finding
from diagnosis.rules.consumers._shared.by_totals import returns, sole_history
from diagnosis.rules.consumers._shared.consumer_capacity import (
    SaturatedQueue,
    network_bound,
    saturated_queues,
    saturation_finding,
)
from diagnosis.rules.consumers._shared.mqtt import mqtt_not_counted, slow_finding, slow_sessions
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.consumers._shared.readers_behind import falling_behind, falling_behind_finding
from diagnosis.rules.consumers._shared.sessions import arrivals, unreported
from diagnosis.rules.consumers._shared.standstill import held, ready
from diagnosis.rules.consumers._shared.stream_readers import lagging_finding, readers_not_listed, worst_readers
from diagnosis.rules.consumers._shared.unattributed_consumers import Judgement, Standing, judgement
from diagnosis.rules.consumers._shared.unlisted_consumers import CLIENT_FAMILIES, unlisted_saturation
from diagnosis.series import last, span
from diagnosis.unattributed import names, suspect_evidence, suspect_facts, with_suspects

NAME = "slow-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that grows while its consumers work at capacity."""
    lacking = tuple(unread(NAME, view, CLIENT_FAMILIES))
    if view.lists_no_clients:
        yield from lacking or unlisted_consumers(NAME, view)
        yield from (_of_saturated(found, round_trip_needed=False) for found in unlisted_saturation(view))
        yield from (_of_saturated(found, round_trip_needed=True) for found in saturated_queues(view))
        return
    if lacking:
        yield from lacking
        return
    yield from unreported(view, NAME, lambda queue: _may_be_slow(view, queue))
    yield from readers_not_listed(view, NAME)
    yield from mqtt_not_counted(view, NAME)
    yield from (slow_finding(view, NAME, found) for found in slow_sessions(view))
    yield from (lagging_finding(view, NAME, found) for found in worst_readers(view))
    yield from (falling_behind_finding(view, NAME, found) for found in falling_behind(view))
    for queue in view.uncounted_queues:
        judged = judgement(view, queue)
        # Messages that are returned are settled, too, and the queue grows all the same: see requeue-loop.
        if judged is not None and judged.standing is Standing.SLOW and not returns(view, queue):
            yield _of_unattributed(view, judged)
    for found in saturated_queues(view):
        by_network = network_bound(view, found)
        if not by_network:
            yield _of_saturated(found, round_trip_needed=by_network is None)


def _of_saturated(found: SaturatedQueue, *, round_trip_needed: bool) -> RuleResult:
    if found.usual is not None:
        return Suppressed(rule=NAME, subject=queue_subject(found.queue), reason="usual_backlog", facts=found.usual)
    facts = {
        "compared": found.compared,
        "change": found.change,
        "round_trip_needed": round_trip_needed,
        "batch": None if found.lumps is None else {"size": found.lumps.size, "seconds": found.lumps.seconds},
        "lag": None,
        "behind": None,
        "mqtt": False,
    }
    return saturation_finding(NAME, found, facts)


def _may_be_slow(view: View, queue: Queue) -> bool:
    """Return whether a queue became longer, and its unattributed consumers could not be judged."""
    recent = last(view.history(queue), view.limits(queue).interval)
    grown = len(recent) < 2 or ready(recent[-1].value) > ready(recent[0].value)
    judged = judgement(view, queue)
    # One of several queues may be in a loop, and this one slow.
    unclear = judged is None or (
        judged.standing is Standing.SLOW and bool(returns(view, queue)) and not sole_history(view, queue)
    )
    return bool(ready(queue)) and bool(held(queue)) and grown and unclear


def _of_unattributed(view: View, judged: Judgement) -> Finding:
    """Return the finding about AMQP 1.0 consumers without a reported session, whose pace is therefore not known."""
    found, queue = judged.of, judged.of.queue
    made = backlog_finding(
        view,
        NAME,
        queue,
        found.links[0],
        judged.tail,
        facts={
            "unacked": held(queue),
            "prefetch_total": held(queue),
            "round_trip_needed": False,
            "growth_rate": arrivals(judged.tail) / span(judged.tail),
            "clients": names(found.suspects),
            "consumers": len(found.links),
            "suspects": suspect_facts(found.suspects),
            "returns_unknown": returns(view, queue) is None,
        },
        evidence=(
            Evidence(
                key="ready", value=ready(queue), unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")
            ),
            Evidence(
                key="moves",
                value=held(queue),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged", "consumer_capacity")
                if queue.type == "classic"
                else source("/api/queues", "messages_unacknowledged", "messages")
                + source("/metrics/detailed", "rabbitmq_detailed_raft_log_commit_index"),
            ),
            *suspect_evidence(found.suspects),
        ),
    )
    return replace(made, involved=with_suspects(made.involved, found.suspects))
