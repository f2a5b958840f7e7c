"""delay-queue-cycle: messages that expire can only go round in a circle, so the broker drops them.

The circle is of delay queues, or leads from a work queue whose messages expire through delay queues back to it. The
broker drops a message that comes back by expiry to a queue where it expired before, silently. With at-least-once
dead-lettering, a quorum queue stores it instead. Messages go round for good only if a consumer rejects them on the way:
that is dead-letter-cycle.
Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import ledger, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.routes import Place, dead_lettering, dead_letters_from, dead_letters_to, is_delay
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import MAX_NAMED, involved_queue, queue_refs, queue_subject
from diagnosis.rules.queues._shared.waits import gone, skew
from diagnosis.rules.queues.dead_letter_cycle import cycle_path
from diagnosis.series import delta, last, span
from diagnosis.window import Series

NAME = "delay-queue-cycle"


@dataclass(frozen=True, slots=True)
class _Feeder:
    """A queue whose dead letters come into a circle of delay queues.

    Attributes:
        rejected: messages that its consumers rejected, and that go nowhere else; 0 if none is proven, None if unknown.
        proven: those of them that delays between counters cannot explain.
        seconds: over which time.
    """

    queue: Queue
    rejected: int | None
    proven: int
    seconds: float

    def facts(self) -> dict[str, Fact]:
        return {"name": self.queue.name, "rejected": self.rejected, "rate": self.rate}

    @property
    def rate(self) -> float | None:
        """Rejected messages per second; None if none are proven."""
        return self.rejected / self.seconds if self.rejected and self.seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fate:
    """What became of the messages of some queues.

    Attributes:
        feeders: queues whose dead letters these messages are.
        dropped: minimum of those that left all of the queues; 0 if none is proven.
        stored: those that the broker stores because it must not lose them.
        published, seconds: messages published, and over which time.
        since: start of that time.
        watched: seconds for which the queues have been seen.
    """

    feeders: tuple[_Feeder, ...] = ()
    dropped: int
    stored: int
    published: int
    seconds: float
    since: str
    watched: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every delay queue from which no dead letter reaches a queue of another kind."""
    routes = per_view(view, _delays)
    seen: set[Place] = set()
    for key in sorted(routes):
        path = () if key in seen else cycle_path(key, routes)
        if not path:
            continue
        circle = [queue for place in path if (queue := view.queue(*place)) is not None]
        seen |= set(path)
        if all(routes[queue.key] <= set(path) for queue in circle):
            yield from _judge(view, path, circle, _fate(view, circle))
    for queue in view.queues:
        path = way_back(view, queue)
        circle = [each for place in path if (each := view.queue(*place)) is not None]
        fate = _expired(view, queue, circle) if path else None
        if fate is not None:
            yield from _judge(view, path, circle, fate, worked=True)


def _delays(view: View) -> dict[Place, frozenset[Place]]:
    """Return where the dead letters of each delay queue go."""
    return {
        queue.key: reached
        for queue in dead_lettering(view)
        if is_delay(view, queue) and (reached := dead_letters_to(view, queue)) is not None
    }


def way_back(view: View, queue: Queue) -> tuple[Place, ...]:
    """Return the path of messages that expire in a work queue, if it leads through delay queues back to it only."""
    delays = per_view(view, _delays)
    if queue.key in delays or not isinstance(queue.setting("message-ttl"), int):
        return ()
    path, reached = [queue.key], dead_letters_to(view, queue)
    while reached is not None and len(reached) == 1:
        place = next(iter(reached))
        if place == queue.key:
            return tuple(path) if len(path) > 1 else ()
        if place in path or place not in delays:
            break
        path.append(place)
        reached = delays[place]
    return ()


def _expired(view: View, queue: Queue, circle: list[Queue]) -> _Fate | None:
    """Return what became of the messages that expired in a work queue; None if none is proven to have expired.

    What consumers reject comes back to it. What expires there and comes back by expiry alone is dropped.
    """
    limits, history = view.limits(queue).queues, view.history(queue)
    found = None if may_settle_unseen(view, queue) else ledger(history, skew=limits.loss_skew)
    if found is None or found.proven_vanished < max(limits.loss_least, limits.loss_share * found.arrived):
        return None
    stored = sum(each.messages_dlx or 0 for each in circle)
    dropped, run, published = found.proven_vanished, history, found.arrived
    whole = _balance_of_all(view, circle)
    if whole is not None and whole[0] > dropped * span(whole[1]) / max(1.0, span(history)):
        dropped, run, published = whole
    return _Fate(
        dropped=dropped,
        stored=stored,
        published=published,
        seconds=span(run),
        since=run[0].at.iso(),
        watched=span(history),
    )


def _balance_of_all(view: View, circle: list[Queue]) -> tuple[int, Series[Queue], int] | None:
    """Return what all queues of a circle lost at least, over which readings, and what was published to them.

    What came from outside, and is neither acknowledged nor in one of them, was dropped: nothing leads out. The work
    queue alone loses what expires, and gets it back once, which no counter shows. None if not all of them were read.
    """
    histories = [view.history(queue) for queue in circle]
    times = set.intersection(*({seen.at.mono for seen in each} for each in histories))
    runs = [tuple(seen for seen in each if seen.at.mono in times) for each in histories]
    found = [balance(run) for run in runs]
    known = [each for each in found if each is not None]
    if len(times) < 2 or len(known) < len(circle):
        return None
    unsure = sum(skew(view, queue, run) for queue, run in zip(circle, runs, strict=True))
    lost = sum(each.missing for each in known) - ceil(unsure)
    return lost, runs[0], sum(each.published for each in known)


def _judge(
    view: View, path: tuple[Place, ...], circle: list[Queue], fate: _Fate, *, worked: bool = False
) -> Iterator[RuleResult]:
    limits = view.thresholds.queues
    if fate.watched < view.thresholds.early or not (fate.published or any(queue.messages for queue in circle)):
        return
    if fate.dropped:
        severity = Severity.CRITICAL
    else:
        severity = Severity.WARNING if fate.watched >= limits.dlx_for else Severity.INFO
    closing = _closing(view, path, fate)
    # The queue that publishers use is the subject; all others follow from it. Without publishers, it is the wrong one.
    used = max(circle, key=lambda queue: (queue.stats.publish or 0, queue.key))
    first = circle[0] if worked else closing if closing is not None and not fate.published else used
    yield Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(first),
        since=fate.since,
        accounted=lost.vanished if (lost := ledger(view.history(first))) else None,
        facts={
            "queue": queue_facts(first),
            "path": [name for _, name in (*path, path[0])],
            "queue_count": len(circle),
            "worked": worked,
            "ttl_seconds": first.setting("message-ttl") / 1000 if worked else None,
            "dropped": fate.dropped,
            "stored": fate.stored,
            "published": fate.published,
            "over_seconds": fate.seconds,
            "waiting": sum(queue.messages or 0 for queue in circle),
            "feeders": [each.facts() for each in fate.feeders[:MAX_NAMED]],
            "closing": None if closing is None else queue_facts(closing),
            "closing_exchange": None if closing is None else closing.setting("dead-letter-exchange"),
            "closing_by_policy": closing is not None and "dead-letter-exchange" in closing.effective_policy,
            "warning_after_seconds": limits.dlx_for,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.CERTAIN,
        seen_seconds=fate.watched,
        evidence=tuple(_evidence(fate)),
        involved=involved_queue(
            first,
            others=queue_refs(
                each
                for each in (*circle[:MAX_NAMED], *(each.queue for each in fate.feeders[:MAX_NAMED]))
                if each is not first
            ),
        ),
    )


def _closing(view: View, path: tuple[Place, ...], fate: _Fate) -> Queue | None:
    """Return the delay queue of a circle that leads back to where dead letters come in; None if not one place."""
    entries = {place for each in fate.feeders for place in dead_letters_to(view, each.queue) or ()} & set(path)
    if len(entries) != 1:
        return None
    return view.queue(*path[path.index(entries.pop()) - 1])


def _feeders(view: View, circle: list[Queue]) -> Iterator[_Feeder]:
    """Yield the queues whose dead letters come into a circle, also through other delay queues, by their names."""
    seen = {queue.key for queue in circle}
    following = list(circle)
    found: list[Queue] = []
    while following:
        for queue in dead_letters_from(view, following.pop()):
            if queue.key not in seen:
                seen.add(queue.key)
                (following if is_delay(view, queue) else found).append(queue)
    limits = view.thresholds.queues
    for queue in sorted(found, key=lambda each: each.key):
        run = last(view.history(queue), limits.dlx_for)
        settled = None if may_settle_unseen(view, queue) else ledger(run, skew=limits.loss_skew)
        only = len(dead_letters_to(view, queue) or ()) == 1
        if settled is None or not only:
            yield _Feeder(queue, None, 0, span(run))
        else:
            proven = settled.proven_discarded
            yield _Feeder(queue, settled.discarded if proven else 0, proven, span(run))


def _fate(view: View, circle: list[Queue]) -> _Fate:
    limits = view.thresholds.queues
    runs = [last(view.history(queue), limits.dlx_for) for queue in circle]
    feeders = tuple(_feeders(view, circle))
    # Dead letters do not count as published.
    dropped = sum(gone(run) for run in runs) + sum(each.proven for each in feeders)
    unsure = max(limits.loss_least - 1, sum(skew(view, queue, run) for queue, run in zip(circle, runs, strict=True)))
    return _Fate(
        feeders=feeders,
        dropped=dropped if dropped > unsure else 0,
        stored=sum(queue.messages_dlx or 0 for queue in circle),
        published=sum(delta(run, "publish") for run in runs),
        seconds=max(span(run) for run in runs),
        since=min(run[0].at.iso() for run in runs),
        watched=min(span(view.history(queue)) for queue in circle),
    )


def _evidence(fate: _Fate) -> Iterator[Evidence]:
    counters = source("/api/queues", "message_stats.publish", "messages")
    yield Evidence(
        key="path", source=source("/api/queues", "arguments", "effective_policy_definition") + source("/api/bindings")
    )
    yield Evidence(
        key="published",
        value=fate.published,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.publish"),
        facts={"over_seconds": fate.seconds},
    )
    for each in fate.feeders[:MAX_NAMED]:
        if each.rejected:
            yield Evidence(
                key="rejected",
                value=each.rejected,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver", "message_stats.ack", "messages_unacknowledged"),
                facts={"feeder": each.queue.name, "over_seconds": each.seconds},
            )
    if fate.dropped:
        yield Evidence(key="dropped", value=fate.dropped, unit=Unit.MESSAGES, source=counters)
    if fate.stored:
        yield Evidence(
            key="stored", value=fate.stored, unit=Unit.MESSAGES, source=source("/api/queues", "messages_dlx")
        )
