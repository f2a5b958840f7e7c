"""dead-letter-cycle (C07): messages go from a queue to its dead-letter queue and back, endlessly.

A retry through a delay queue is a cycle by design: most messages leave it by an ack. It is a fault if almost nothing is
acknowledged and the same messages are rejected again, or if ever more messages wait for their next try, over more
rounds than a retry that ends has. The broker ends a cycle only if it contains no reject. A delay queue on the path that
is at its length limit does not delay: what exceeds the limit comes back at once.
Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Fact, Facts, Finding, QueueRef, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.routes import Place, dead_lettering, dead_letters_to
from diagnosis.rules.queues._shared.endless_retries import EndlessRetries, endless_retries
from diagnosis.rules.queues._shared.message_balance import MessageBalance, balance, latest_run
from diagnosis.rules.queues._shared.queue import certainty, involved_queue, queue_subject
from diagnosis.rules.queues._shared.waits import cut_short
from diagnosis.series import count, delta, span
from diagnosis.window import HORIZON, Series

NAME = "dead-letter-cycle"

_ACKED_IF_FULL = 0.5
"""Share of the deliveries that may be acknowledged where a full delay queue on the path does not delay."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers whose dead letters come back to it."""
    routes: dict[Place, frozenset[Place]] | None = None
    for queue in dead_lettering(view):
        if queue.setting("dead-letter-exchange") is None or not queue.consumers or not view.moved(queue, "deliver"):
            continue
        acked = view.limits(queue).queues.cycle_acked
        rejecting = _rejecting_run(view, queue, max(acked, _ACKED_IF_FULL))
        if rejecting is None and not _rejects_some(view, queue):
            continue
        if routes is None:
            routes = {each.key: dead_letters_to(view, each) or frozenset() for each in view.queues}
        path = cycle_path(queue.key, routes)
        if path and _full(view, path, 0.0, 0.0) is None:
            rejecting = _rejecting_run(view, queue, acked)
        if path:
            found = [_finding(view, queue, path, *rejecting)] if rejecting is not None else []
            if not found or found[0].severity is Severity.INFO:
                found = [*_growing(view, queue, path), *found]
            yield from found[:1]


def _rejects_some(view: View, queue: Queue) -> bool:
    whole = balance(view.history(queue))
    return whole is not None and whole.rejected >= view.limits(queue).queues.cycle_rounds


def _growing(view: View, queue: Queue, path: tuple[Place, ...]) -> Iterator[Finding]:
    """Yield the finding about retries that become more, once a retry that ends would not."""
    limits = view.limits(queue).queues
    found = endless_retries(view, queue, path)
    if found is None or found.rounds < limits.cycle_rounds / 2 or found.seconds < view.thresholds.early:
        return
    whole = balance(found.run)
    if whole is not None:
        yield _finding(view, queue, path, found.run, whole, found)


def cycle_path(start: Place, routes: dict[Place, frozenset[Place]]) -> tuple[Place, ...]:
    """Return the shortest path of dead letters from a queue back to itself, without its end; empty if there is none."""
    paths: list[tuple[Place, ...]] = [(start,)]
    seen: set[Place] = set()
    for path in paths:
        for target in sorted(routes.get(path[-1], ())):
            if target == start:
                return path
            if target not in seen:
                seen.add(target)
                paths.append((*path, target))
    return ()


def _rejecting_run(view: View, queue: Queue, share: float) -> tuple[Series[Queue], MessageBalance] | None:
    """Return the latest stretch in which at most a share was acknowledged and the same messages were rejected again."""
    limits = view.limits(queue)

    def rejects(pair: Series[Queue]) -> bool:
        delivered, acked = delta(pair, "deliver"), delta(pair, "ack")
        step = balance(pair)
        # Redelivered messages were requeued, so they never left the queue.
        dead_lettered = step.rejected - delta(pair, "redeliver") if step is not None else 0
        return dead_lettered >= limits.queues.cycle_rate * span(pair) and acked <= share * delivered

    run = latest_run(view.history(queue), limits.interval, rejects)
    whole = balance(run)
    if whole is None or whole.seconds < limits.early:
        return None
    # More messages are rejected than there were and than were published, so the same messages come back.
    same = whole.rejected > 2 * (whole.published + (run[0].value.messages or 0))
    return (run, whole) if same else None


def _full(view: View, path: tuple[Place, ...], least: float, rate: float) -> dict[str, Fact] | None:
    """Return the first queue on the way back that is full and so shortens the delay; None if there is none."""
    for place in path[1:]:
        queue = view.queue(*place)
        if queue is None or queue.consumers:
            continue
        found = cut_short(view, queue, least, rate)
        if found is not None:
            return found
    return None


def _finding(
    view: View,
    queue: Queue,
    path: tuple[Place, ...],
    run: Series[Queue],
    whole: MessageBalance,
    endless: EndlessRetries | None = None,
) -> Finding:
    limits, seconds = view.limits(queue).queues, span(run)
    after = limits.cycle_for
    if endless is not None:
        after = max(after, limits.cycle_rounds * endless.round_seconds)
    severity = Severity.WARNING if seconds >= after else Severity.INFO
    last_queue = view.queue(*path[-1]) or queue
    counters = source("/api/queues", "message_stats.deliver", "message_stats.ack", "messages_unacknowledged")
    # A dead letter that came back may count as redelivered, and so does what a consumer requeued.
    least = max(0, whole.rejected - delta(run, "redeliver")) / whole.seconds
    full = _full(view, path, least, whole.rejected / whole.seconds)
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "path": [name for _, name in (*path, path[0])],
            "last_queue": queue_facts(last_queue),
            "reject_rate": whole.rejected / seconds,
            "rejected": whole.rejected,
            "published": whole.published,
            "acked": whole.consumed,
            "acked_rate": whole.consumed / seconds,
            "full": full,
            "over_seconds": seconds,
            "delivered_total": count(queue.stats, "deliver"),
            "acked_total": count(queue.stats, "ack"),
            "endless": None if endless is None else _endless_facts(endless),
            "warning_after_seconds": after if after < HORIZON else None,
        },
        certainty=certainty(severity, seconds, after),
        seen_seconds=seconds,
        evidence=(
            Evidence(key="rejected", value=whole.rejected, unit=Unit.MESSAGES, source=counters),
            Evidence(
                key="published",
                value=whole.published,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="acked", value=whole.consumed, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")
            ),
            Evidence(
                key="path",
                source=source("/api/queues", "arguments", "effective_policy_definition") + source("/api/bindings"),
            ),
            *([] if endless is None else [_waiting(endless)]),
            *([Evidence(key="full", source=source("/api/queues", "messages_ready", "arguments"))] if full else []),
            Evidence(key="totals", source=source("/api/queues", "message_stats.deliver", "message_stats.ack")),
        ),
        involved=involved_queue(queue, view.links(queue), [QueueRef(*each) for each in path[1:]]),
    )


def _endless_facts(found: EndlessRetries) -> Facts:
    return {
        "delays": list(found.delays),
        "waiting": found.waiting,
        "waited_before": found.first,
        "growth_rate": (found.waiting - found.first) / found.seconds,
        "rounds": int(found.rounds),
        "round_seconds": found.round_seconds,
    }


def _waiting(found: EndlessRetries) -> Evidence:
    return Evidence(
        key="waiting", value=found.waiting, unit=Unit.MESSAGES, source=source("/api/queues", "messages", "arguments")
    )
