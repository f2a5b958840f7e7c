"""unexplained-loss: messages came into a queue, and the ledger shows neither where they went nor where they are.

This is the law beneath the rules that name a kind of loss. It reports what no finding about the same queue accounts
for: the engine leaves it out if they explain as many messages (`diagnosis.laws`). The finding lists which causes the
counters and settings allow, and which they exclude. A queue with consumers and without such settings that loses
messages all the time loses them by an expiration that publishers set on each message: a purge takes all at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Facts, Finding, Inconclusive, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_names
from diagnosis.ledger import Ledger, ledger, losing, may_have_lost, may_settle_unseen, most_uncounted
from diagnosis.routes import dead_letters_to
from diagnosis.rules.consumers._shared.arrivals import filling_clients
from diagnosis.rules.consumers._shared.comings import comings, recent_clients
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.consumers._shared.turnover import consumers_by_reading, identity
from diagnosis.rules.publishers._shared.overflow import has_length_limit, level, refuses_when_full
from diagnosis.rules.queues._shared.expiry_severity import (
    NO_TIME,
    consumers_are_idle,
    expiry_severity,
    is_much,
    longest_life,
)
from diagnosis.rules.queues._shared.message_balance import balance, leaves_in_steps
from diagnosis.rules.queues._shared.queue import (
    involved_queue,
    is_private,
    queue_subject,
    queue_with_policy,
)
from diagnosis.rules.queues.queue_purged import purges
from diagnosis.series import span
from diagnosis.window import Series

NAME = "unexplained-loss"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Balance every queue, and yield what does not balance."""
    unseen = 0
    ended: list[Queue] = []
    for queue in view.queues:
        if not may_have_lost(view, queue) or queue.durable is False or is_private(queue):
            continue
        if may_settle_unseen(view, queue):
            unseen += 1
            continue
        history = view.history(queue)
        found = ledger(history, most=most_uncounted(view, queue))
        if found is None or _moved_on(view, queue):
            continue
        limits = view.limits(queue)
        proof = max(limits.queues.loss_least, limits.queues.loss_share * found.arrived)
        if found.proven_vanished < proof:
            if found.uncounted and found.perhaps_uncounted >= proof:
                ended.append(queue)
            continue
        run = losing(history, lambda each: each.vanished, found.vanished)
        if history[-1].at.since(run[0].at) >= limits.early and not _refused(view, queue, run):
            yield _finding(view, queue, run, found)
    if ended:
        yield Inconclusive(rule=NAME, reason="ended_clients", facts={"queues": len(ended), "names": queue_names(ended)})
    if unseen:
        yield Inconclusive(rule=NAME, reason="other_protocol", facts={"queues": unseen}, permanent=True)


def _moved_on(view: View, queue: Queue) -> bool:
    """Return whether messages that leave without a delivery go to another queue, or may."""
    if not isinstance(queue.setting("dead-letter-exchange"), str):
        return False
    places = dead_letters_to(view, queue)
    return places is None or bool(places - {queue.key})


def _refused(view: View, queue: Queue, run: Series[Queue]) -> bool:
    """Return whether the queue was full and refused publishes: those were counted, and are nacked, not lost."""
    share = view.limits(queue).queues.full_share
    return any(refuses_when_full(seen.value) and level(seen.value) >= share for seen in run)


def _explanations(queue: Queue, found: Ledger) -> dict[str, bool]:
    """Return the causes of a loss before delivery, and whether settings and counters allow each."""
    limited, refuses = has_length_limit(queue), refuses_when_full(queue)
    return {
        "message_ttl": queue.setting("message-ttl") is not None,
        "length_limit": limited and not refuses,
        "refused": limited and refuses,
        "message_expiration": True,
        "purge": True,
        "rejected": found.proven_discarded > 0,
    }


@dataclass(frozen=True, slots=True)
class _Expiring:
    """Messages that leave a consumed queue by their own expiration, and how bad that is."""

    severity: Severity
    facts: Facts


def _expires(view: View, queue: Queue, run: Series[Queue]) -> _Expiring | None:
    """Return messages that leave a consumed queue by their own expiration; None if that is not likely.

    Its facts are `{"clients", "publishers", "publish_rate", "consume_rate", "waited_seconds", "idle", "life_seconds"}`:
    `publishers` are those that are proven to publish to the queue; `waited_seconds` is how long a message waits before
    it leaves, None if none was ready; `life_seconds` is how long one lives at most, if that is next to nothing.
    """
    if queue.setting("message-ttl") is not None or has_length_limit(queue) or not queue.consumers:
        return None
    if not leaves_in_steps(view, queue, run) or purges(view, queue):
        return None
    whole = balance(run)
    if whole is None or not whole.published:
        return None
    rate, ready = whole.published / whole.seconds, sum(seen.value.messages_ready or 0 for seen in run) / len(run)
    filling, life = filling_clients(view, queue), longest_life(run, whole)
    severity = expiry_severity(view, queue, run, whole, lost=True, life=life)
    if is_much(view, queue, whole):
        severity = min(severity, Severity.WARNING, key=lambda each: each.urgency)
    facts: Facts = {
        "clients": client_names(view.links(queue)),
        "publishers": sorted({name for each in filling for name in each.names}),
        "publish_rate": rate,
        "consume_rate": whole.consumed / whole.seconds,
        "waited_seconds": ready / rate if ready else None,
        "idle": consumers_are_idle(run),
        "life_seconds": life if life is not None and life <= NO_TIME else None,
    }
    return _Expiring(severity, facts)


def _comes_and_goes(view: View, queue: Queue, run: Series[Queue]) -> bool:
    """Return whether consumers of a queue ended and others came, within the readings or as the list of them tells."""
    listed = {identity(each) for consumers in consumers_by_reading(view, queue) for each in consumers}
    return comings(run) > 0 or len(listed) > (queue.consumers or 0)


def _finding(view: View, queue: Queue, run: Series[Queue], found: Ledger) -> Finding:
    explanations, comes_and_goes = _explanations(queue, found), _comes_and_goes(view, queue, run)
    # An application may purge its queue at each start.
    expires = None if comes_and_goes else _expires(view, queue, run)
    configured = any(explanations[name] for name in ("message_ttl", "length_limit", "refused"))
    severity = Severity.INFO if configured else Severity.WARNING
    if expires is not None:
        severity = expires.severity
    fits: list[Fact] = [name for name, allowed in explanations.items() if allowed]
    excluded: list[Fact] = [name for name, allowed in explanations.items() if not allowed]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "lost": found.vanished,
            "accounted": 0,
            "error": found.vanished_error,
            "arrived": found.arrived,
            "delivered": found.delivered + found.auto,
            "stored": found.stored,
            "ready": queue.messages_ready or 0,
            "consumers": queue.consumers or 0,
            "over_seconds": span(run),
            "expires": expires.facts if expires is not None else None,
            "comes_and_goes": comes_and_goes,
            "clients": recent_clients(view, queue),
            "fits": fits,
            "excluded": excluded,
        },
        certainty=Certainty.LIKELY,
        seen_seconds=span(run),
        evidence=(
            Evidence(
                key="arrived",
                value=found.arrived,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="delivered",
                value=found.delivered + found.auto,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_get", "message_stats.redeliver"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready or 0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
            Evidence(
                key="lost",
                value=found.vanished,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats", "messages_ready"),
                facts={"error": found.vanished_error},
            ),
        ),
        involved=involved_queue(queue, view.links(queue)),
    )
