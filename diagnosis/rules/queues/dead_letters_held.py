"""dead-letters-held (C20): a quorum queue keeps its dead letters, because their target does not take them.

With at-least-once dead-lettering a quorum queue keeps a dead letter until its target has confirmed it. It is neither
ready nor unacknowledged meanwhile, and counts towards the length limit. If the target never confirms, the queue fills
up and refuses its publishers, although it looks empty. Nothing is lost.
Source: https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.routes import is_delay, last_exchanges, targets
from diagnosis.rules.publishers._shared.overflow import (
    full_readings,
    held_dead_letters,
    level,
    refused,
    refuses_when_full,
)
from diagnosis.rules.publishers._shared.refused_by_queue import fitting
from diagnosis.rules.queues._shared.dead_letter_route import missing_part, new_route
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import delta, restarted, span, stretch, without_consumers
from diagnosis.window import Series, Timestamped

NAME = "dead-letters-held"

_NAMED = 5
_WORKS = {"running", "idle", "flow", None}
"""States of a queue that takes messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLetters:
    """Dead letters that a queue keeps.

    Attributes:
        run: readings in which it kept some and their number did not fall.
        reason: no_exchange, no_queue, no_binding, wrong_key, target_full, target_down, own_keys, or unknown.
        target: the queue that does not take them, if that is the reason.
        refusing: recent readings if it is full and refuses publishes; else empty.
        refused: messages refused in these; None if unknown.
    """

    queue: Queue
    run: Series[Queue]
    reason: str
    target: Queue | None
    refusing: Series[Queue]
    refused: int | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that keeps dead letters."""
    for queue in view.queues:
        if not held_dead_letters(queue):
            continue
        run = stretch(view.history(queue), _keeps)
        if len(run) < 2 or span(run) < view.limits(queue).early:
            continue
        reason, target = _reason(view, queue)
        grown = held_dead_letters(run[-1].value) - held_dead_letters(run[0].value)
        late = span(run) >= view.limits(queue).queues.dlx_waiting_for or _none_arrives(view, queue, run)
        # A target that is slow also leaves some behind, for a while.
        if reason in ("own_keys", "unknown") and not (grown > 0 and (late or _is_full(queue))):
            continue
        refusing = full_readings(view, queue)
        yield _finding(
            view,
            HeldLetters(
                queue=queue,
                run=run,
                reason=reason,
                target=target,
                refusing=refusing,
                refused=refused(refusing) if refusing else None,
            ),
        )


def _keeps(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    before, after = held_dead_letters(older.value), held_dead_letters(newer.value)
    return 0 < before <= after


def _is_full(queue: Queue) -> bool:
    return refuses_when_full(queue) and level(queue) >= 1.0


def _reason(view: View, queue: Queue) -> tuple[str, Queue | None]:
    """Return why the dead letters of a queue do not leave it, and the target queue that is the reason."""
    missing = missing_part(view, queue)
    if missing is not None:
        return missing, None
    key = queue.setting("dead-letter-routing-key")
    for target in _targets(view, queue):
        if target.state not in _WORKS:
            return "target_down", target
        if full_readings(view, target):
            return "target_full", target
    return ("unknown" if isinstance(key, str) else "own_keys"), None


def _targets(view: View, queue: Queue) -> tuple[Queue, ...]:
    """Return the queues that dead letters of a queue may reach."""
    exchange, key = str(queue.setting("dead-letter-exchange")), queue.setting("dead-letter-routing-key")
    reached = targets(view, queue.vhost, exchange, key if isinstance(key, str) else None) or frozenset()
    return tuple(filter(None, (view.any_queue(*place) for place in sorted(reached))))


def _none_arrives(view: View, queue: Queue, run: Series[Queue]) -> bool:
    """Return whether no target got any message during a run: a slow target gets some."""
    histories = [
        tuple(seen for seen in view.history(target) if seen.at.mono >= run[0].at.mono)
        for target in _targets(view, queue)
    ]
    return bool(histories) and all(
        len(each) > 1 and not restarted(each[0].value.stats, each[-1].value.stats) and not delta(each, "publish")
        for each in histories
    )


def _finding(view: View, found: HeldLetters) -> Finding:
    queue, refusing = found.queue, found.refusing
    held, seconds = held_dead_letters(queue), span(found.run)
    grown = held - held_dead_letters(found.run[0].value)
    clients: list[Fact] = list(dict.fromkeys(each.client for each in fitting(view, queue))) if found.refused else []
    exchange = str(queue.setting("dead-letter-exchange"))
    key = queue.setting("dead-letter-routing-key")
    length = queue.setting("max-length")
    targets_: tuple[Queue, ...] = (found.target,) if found.target else ()
    # What leaves a delay queue is regular work, and it stands still.
    stopped = is_delay(view, queue) and grown > 0 and _none_arrives(view, queue, found.run)
    late = seconds >= view.limits(queue).queues.dlx_for
    alone = found.target.consumers == 0 if found.target else False
    unattended = stretch(view.history(found.target), without_consumers) if found.target and alone else ()
    finding = Finding(
        rule=NAME,
        severity=Severity.CRITICAL if found.refused or (stopped and late) else Severity.WARNING,
        subject=queue_subject(queue),
        since=found.run[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "vhost": queue.vhost,
            "reason": found.reason,
            "exchange": exchange,
            "routing_key": key if isinstance(key, str) else None,
            **new_route(view, queue),
            "last_exchanges": [name for name in last_exchanges(view, queue.vhost, exchange) if name != exchange][
                :_NAMED
            ],
            "held": held,
            "held_bytes": queue.message_bytes_dlx,
            "grown": grown,
            "grow_rate": grown / seconds,
            "ready": queue.messages_ready or 0,
            "limit_messages": length if isinstance(length, int) else None,
            "has_limit": length is not None or queue.setting("max-length-bytes") is not None,
            "refused": found.refused,
            "published": delta(refusing, "publish") if refusing else None,
            "interval_seconds": span(refusing),
            "nacked_clients": clients,
            "target": queue_facts(found.target) if found.target else None,
            "target_state": found.target.state if found.target else None,
            "target_ready": found.target.messages_ready if found.target else None,
            "target_consumers": found.target.consumers if found.target else None,
            "target_unattended_seconds": span(unattended),
            "stopped": stopped,
        },
        certainty=Certainty.LIKELY if found.reason in ("own_keys", "unknown") else Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=tuple(_evidence(found, held)),
        involved=involved_queue(queue, view.links(queue), (queue_ref(each) for each in targets_)),
    )
    named = dict.fromkeys((*finding.involved.clients, *map(str, clients)))
    return replace(finding, involved=replace(finding.involved, clients=tuple(named)))


def _evidence(found: HeldLetters, held: int) -> Iterator[Evidence]:
    yield Evidence(key="held", value=held, unit=Unit.MESSAGES, source=source("/api/queues", "messages_dlx", "messages"))
    yield Evidence(key="route", source=source("/api/exchanges") + source("/api/bindings"))
    if found.refused:
        fields = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
        yield Evidence(key="refused", value=found.refused, unit=Unit.MESSAGES, source=fields)


def _exchange(view: View, finding: Finding) -> Iterable[Hashable]:
    queue = view.queue(finding.subject.vhost, finding.subject.name)
    return () if queue is None else ((queue.vhost, queue.setting("dead-letter-exchange")),)


SAME_EXCHANGE = Relation(_exchange, _exchange)
"""Both are about queues with the same dead-letter exchange."""
