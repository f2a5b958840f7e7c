"""dead-letter-cycle (C07): messages go from a queue to its dead-letter queue and back, endlessly.

A retry through a delay queue is a cycle by design: most messages leave it by an ack. It is a fault if almost nothing is
acknowledged and the same messages are rejected again, or if ever more messages wait for their next try, over more
rounds than a retry that ends has. The broker ends a cycle only if it contains no reject. A delay queue on the path that
is at its length limit does not delay: what exceeds the limit comes back at once. Several queues of a cycle may have
consumers that reject: it is one cycle.

From 4.0 on a dead letter that comes back may count as redelivered, as if a consumer had requeued it. What waits in a
delay queue of the cycle tells them apart, because a requeued message never gets there.
Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Evidence, Fact, Facts, Finding, QueueRef, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.purpose import CONSUMED
from diagnosis.routes import Place, dead_lettering, dead_letters_from, dead_letters_to, is_delay
from diagnosis.rules.queues._shared.endless_retries import EndlessRetries, endless_retries
from diagnosis.rules.queues._shared.message_balance import MessageBalance, balance, latest_run
from diagnosis.rules.queues._shared.queue import certainty, involved_queue, queue_subject
from diagnosis.rules.queues._shared.waits import cut_short
from diagnosis.series import count, delta, last, nearest, span
from diagnosis.window import HORIZON, Series

NAME = "dead-letter-cycle"

_ACKED_IF_FULL = 0.5
"""Share of the deliveries that may be acknowledged where a full delay queue on the path does not delay."""

_NEW = 5
"""Messages that must be published while nothing is acknowledged, so that the work stands still."""

_MOSTLY = 0.5
"""Share of what a queue rejected that must have gone round, so that its redelivered messages are dead letters."""


@dataclass(frozen=True, slots=True)
class _Rejecting:
    """A queue of a cycle whose consumers reject.

    Attributes:
        path: the way of its dead letters back to it, which begins with it.
        run: readings in which they rejected, and `balance` over these.
        endless: retries that become more; None if nearly everything is rejected.
        after: seconds after which it is a warning.
        stopped: whether new messages come and the whole cycle acknowledges none.
    """

    queue: Queue
    path: tuple[Place, ...]
    run: Series[Queue]
    balance: MessageBalance
    endless: EndlessRetries | None
    after: float
    stopped: bool = False

    @property
    def severity(self) -> Severity:
        """Information until it has lasted; then a warning, or critical if the work stands still."""
        if span(self.run) < self.after:
            return Severity.INFO
        return Severity.CRITICAL if self.stopped else Severity.WARNING

    @property
    def rank(self) -> tuple[int, bool, Place]:
        """The order in which the queues of one cycle are named: those that messages are published to come first."""
        return self.severity.urgency, not self.balance.published, self.queue.key

    def facts(self) -> Facts:
        """Return its name and how fast it rejects."""
        return {"name": self.queue.name, "reject_rate": self.balance.rejected / span(self.run)}


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers whose dead letters come back to it; yield one finding for each cycle."""
    rest = sorted(_rejecting_queues(view), key=lambda each: each.rank)
    while rest:
        first, *others = rest
        own = [each for each in others if each.queue.key in first.path and first.queue.key in each.path]
        yield _finding(view, first, own)
        rest = [each for each in others if each not in own]


def goes_round(view: View, queue: Queue) -> bool:
    """Return whether the redelivered messages of a queue are dead letters that came back, and not requeued ones.

    False also if the settings of a queue that may have a dead-letter exchange are unknown.
    """
    if not all(each.settings_known for each in dead_lettering(view)):
        return False
    if queue.setting("dead-letter-exchange") is None or not queue.consumers:
        return False
    path = cycle_path(queue.key, per_view(view, _routes))
    history = last(view.history(queue), view.limits(queue).queues.cycle_for)
    whole = balance(history)
    return bool(path) and whole is not None and 0 < _MOSTLY * whole.rejected <= _passed(view, path, history, whole)


def _rejecting_queues(view: View) -> Iterator[_Rejecting]:
    for queue in dead_lettering(view):
        if queue.setting("dead-letter-exchange") is None or not queue.consumers or not view.moved(queue, "deliver"):
            continue
        limits = view.limits(queue).queues
        most = max(limits.cycle_acked, _ACKED_IF_FULL)
        if _rejecting_run(view, queue, most) is None and not _rejects_some(view, queue):
            continue
        path = cycle_path(queue.key, per_view(view, _routes))
        if not path:
            continue
        found = _rejecting_run(view, queue, limits.cycle_acked if _full(view, path, 0.0, 0.0) is None else most, path)
        lasts = found is not None and span(found[0]) >= limits.cycle_for
        growing = None if lasts else _growing(view, queue, path)
        if growing is not None:
            yield growing
        elif found is not None:
            yield _Rejecting(queue, path, *found, None, limits.cycle_for, _stands_still(view, path, found[0]))


def _stands_still(view: View, path: tuple[Place, ...], run: Series[Queue]) -> bool:
    """Return whether messages are published to a cycle, and none is acknowledged in it, since the first reading."""
    queues = [queue for place in path if (queue := view.queue(*place)) is not None]
    if any(view.has_uncounted(queue) for queue in queues):
        return False
    since = [tuple(seen for seen in view.history(each) if seen.at.mono >= run[0].at.mono) for each in queues]
    published, acked = sum(delta(each, "publish") for each in since), sum(delta(each, *CONSUMED) for each in since)
    return published >= _NEW and not acked


def _routes(view: View) -> dict[Place, frozenset[Place]]:
    return {each.key: dead_letters_to(view, each) or frozenset() for each in dead_lettering(view)}


def _rejects_some(view: View, queue: Queue) -> bool:
    whole = balance(view.history(queue))
    return whole is not None and whole.rejected >= view.limits(queue).queues.cycle_rounds


def _growing(view: View, queue: Queue, path: tuple[Place, ...]) -> _Rejecting | None:
    """Return a queue whose retries become more, once a retry that ends would not; None if they do not."""
    limits = view.limits(queue).queues
    found = endless_retries(view, queue, path)
    if found is None or found.rounds < limits.cycle_rounds / 2 or found.seconds < view.thresholds.early:
        return None
    whole, after = balance(found.run), max(limits.cycle_for, limits.cycle_rounds * found.round_seconds)
    return None if whole is None else _Rejecting(queue, path, found.run, whole, found, after)


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


def _rejecting_run(
    view: View, queue: Queue, share: float, path: tuple[Place, ...] | None = None
) -> tuple[Series[Queue], MessageBalance] | None:
    """Return the latest stretch in which at most a share was acknowledged and the same messages were rejected again.

    Without a path, all that was rejected may be dead letters.
    """
    limits = view.limits(queue)

    def rejects(pair: Series[Queue]) -> bool:
        delivered, acked = delta(pair, "deliver"), delta(pair, "ack")
        step = balance(pair)
        dead_lettered: float = 0 if step is None else step.rejected
        if step is not None and path is not None:
            # Requeued messages never left the queue.
            dead_lettered = max(dead_lettered - delta(pair, "redeliver"), _passed(view, path, pair, step))
        return dead_lettered >= limits.queues.cycle_rate * span(pair) and acked <= share * delivered

    run = latest_run(view.history(queue), limits.interval, rejects)
    whole = balance(run)
    if whole is None or whole.seconds < limits.early:
        return None
    # More messages are rejected than there were and than were published, so the same messages come back.
    same = whole.rejected > 2 * (whole.published + (run[0].value.messages or 0))
    return (run, whole) if same else None


def _passed(view: View, path: tuple[Place, ...], series: Series[Queue], found: MessageBalance) -> float:
    """Return how many dead letters of a queue came back within some readings, at least, by what waits on the way back.

    By Little's law, the rate of messages that come is the number that wait divided by the time that each waits, which
    is the TTL at most. The queue keeps or acknowledges some, and the others leave it. `found` is its balance.
    """
    passed = 0.0
    for place in path[1:]:
        delay = view.queue(*place)
        ttl = delay.setting("message-ttl") if delay is not None else None
        if delay is None or not isinstance(ttl, int) or not ttl or not is_delay(view, delay):
            continue
        waits = view.history(delay)
        if delta(waits, "publish") or any(each.key not in path for each in dead_letters_from(view, delay)):
            continue
        stocks = [nearest(waits, seen.at).value.messages_ready or 0 for seen in series]
        waited = sum(
            (older + newer) / 2 * span(pair)
            for (older, newer), pair in zip(pairwise(stocks), pairwise(series), strict=True)
        )
        passed = max(passed, waited / (ttl / 1000))
    return min(found.rejected, passed - max(0, found.stored) - found.consumed)


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


def _finding(view: View, first: _Rejecting, others: list[_Rejecting]) -> Finding:
    """Return the finding about a cycle, by the queue that is named first."""
    queue, path, run, whole, endless = first.queue, first.path, first.run, first.balance, first.endless
    severity, after, seconds = first.severity, first.after, span(first.run)
    rejecting = [queue, *(each.queue for each in others)]
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
            "stopped": first.stopped,
            "others": [each.facts() for each in others],
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
        involved=involved_queue(
            queue, [link for each in rejecting for link in view.links(each)], [QueueRef(*each) for each in path[1:]]
        ),
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
