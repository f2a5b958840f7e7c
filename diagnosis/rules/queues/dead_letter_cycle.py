"""dead-letter-cycle (C07): messages go from a queue to its dead-letter queue and back, without end.

A retry by way of a delay is a circle on purpose: most messages leave it by an ack. It is a fault when next to nothing
is acknowledged, and what consumers reject comes again. The broker ends a circle only if no reject is in it.
Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.routes import Place, dead_letters_to
from diagnosis.rules.queues.balance import Balance, all_along, balance
from diagnosis.rules.queues.telling import about, named, so_far
from diagnosis.series import count, delta, span
from diagnosis.window import Series
from diagnosis.words import amount, lasting, list_consumers, place

NAME = "dead-letter-cycle"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers whose dead letters come back to it."""
    following: dict[Place, frozenset[Place]] | None = None
    for queue in view.queues:
        if queue.setting("dead-letter-exchange") is None or not queue.consumers or not view.moved(queue, "deliver"):
            continue
        whirls = _whirling(view, queue)
        if whirls is None:
            continue
        if following is None:
            following = {each.key: dead_letters_to(view, each) or frozenset() for each in view.queues}
        way = circle(queue.key, following)
        if way:
            yield _finding(view, queue, way, *whirls)


def circle(start: Place, following: dict[Place, frozenset[Place]]) -> tuple[Place, ...]:
    """The shortest way of dead letters from a queue back to it, without the end; empty where there is none."""
    ways: list[tuple[Place, ...]] = [(start,)]
    seen: set[Place] = set()
    for way in ways:
        for target in sorted(following.get(way[-1], ())):
            if target == start:
                return way
            if target not in seen:
                seen.add(target)
                ways.append((*way, target))
    return ()


def _whirling(view: View, queue: Queue) -> tuple[Series[Queue], Balance] | None:
    """The time until now in which nearly all that was delivered was rejected, and came anew."""
    limits = view.limits(queue)

    def whirls(pair: Series[Queue]) -> bool:
        delivered, acked = delta(pair, "deliver"), delta(pair, "ack")
        step = balance(pair)
        # As many are redelivered as requeued: those never left the queue.
        gone = step.given_back - delta(pair, "redeliver") if step is not None else 0
        return gone >= limits.queues.cycle_rate * span(pair) and acked <= limits.queues.cycle_acked * delivered

    lately = all_along(view.history(queue), limits.interval, whirls)
    whole = balance(lately)
    if whole is None or whole.seconds < limits.early:
        return None
    # Rejected more often than it was published: the same ones come again.
    come_again = whole.given_back > 2 * whole.published and whole.given_back > 2 * (queue.messages or 0)
    return (lately, whole) if come_again else None


def _finding(view: View, queue: Queue, way: tuple[Place, ...], lately: Series[Queue], whole: Balance) -> FindingReport:
    limits, seconds = view.limits(queue).queues, span(lately)
    severity = Severity.WARNING if seconds >= limits.cycle_for else Severity.INFO
    path = " -> ".join(repr(name) for _, name in (*way, way[0]))
    rate = whole.given_back / seconds
    store = view.queue(*way[-1]) or queue
    remove = f"rabbitmqctl purge_queue {place(store)}"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=lately[0].at.iso(),
        summary=(
            f"Messages go round without end: {path}; {rate:.1f} a second are rejected in {named(queue)}, "
            f"{whole.taken} acknowledged in {lasting(seconds)}; "
            f"{so_far(severity, seconds, limits.cycle_for, 'a retry that ends')}"
        ),
        cause=(
            "Consumers reject what they cannot process, it is dead-lettered, and the dead letters are led back to the "
            "same queue; nothing counts the rounds."
        ),
        evidence=(
            EvidenceReport(
                what="rejected",
                value=f"{amount(whole.given_back, 'message')} in {lasting(seconds)}, the same ones again and again",
                expected="fewer than are published",
                source="/api/queues message_stats.deliver, ack, messages_unacknowledged",
            ),
            EvidenceReport(
                what="published to it",
                value=f"{amount(whole.published, 'message')} in {lasting(seconds)} (dead letters are not counted)",
                source="/api/queues message_stats.publish",
            ),
            EvidenceReport(
                what="acknowledged", value=f"{whole.taken}", expected="most", source="/api/queues message_stats.ack"
            ),
            EvidenceReport(
                what="way of the dead letters",
                value=path,
                expected="ends in a queue that is looked at by people",
                source="/api/queues arguments, effective_policy_definition; /api/bindings",
            ),
            EvidenceReport(
                what="since it exists",
                value=f"{count(queue.stats, 'deliver')} delivered, {count(queue.stats, 'ack')} acknowledged",
                source="/api/queues message_stats",
            ),
        ),
        next_steps=(
            f"see who rejects, and read its log: {list_consumers(queue)}",
            "stop that consumer, or let it count x-death and park what came more than a few times in another queue",
            f"to end it now (what is on its way round is gone then): {remove}",
            "later: a quorum queue with a delivery limit for retries, and a dead-letter queue that leads nowhere",
        ),
        runbook=runbook(NAME),
    )
