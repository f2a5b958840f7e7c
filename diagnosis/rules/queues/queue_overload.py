"""queue-overload (C01): a queue receives more than its consumers process, and the consumers are not what changed.

There are two cases. In a surge, the publish rate rises while consumers are as fast as before. Or messages are ready
although consumers have room: they hold fewer unacknowledged messages than their prefetch allows, or need not
acknowledge. Slow consumers at capacity are another cause (slow-consumer, prefetch-too-small), with this as consequence.

If such consumers get nothing at all any more, the queue stands still, and its rate of before says nothing.

A queue without consumers that clients poll with basic.get is overloaded likewise, if its low points rise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Evidence, Fact, Finding, Severity, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts
from diagnosis.hold_time import may_hold
from diagnosis.purpose import CONSUMED
from diagnosis.rules.consumers._shared.handover import successors
from diagnosis.rules.consumers._shared.objects import admits_only_one
from diagnosis.rules.queues._shared.message_balance import latest_run
from diagnosis.rules.queues._shared.polled_backlogs import polled_backlog, poller
from diagnosis.rules.queues._shared.queue import certainty, involved_queue, queue_subject
from diagnosis.series import delta, last, span, stretch
from diagnosis.usual import is_less, is_more, of_queue, queue_baselines, usual_backlog
from diagnosis.window import Series

NAME = "queue-overload"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGrowth:
    """A queue that grows while its consumers work; rates are messages per second.

    Attributes:
        run: the readings during which it grew.
        publish_rate_before: publish rate before the surge; None if the load did not change within the window.
        has_room: whether its consumers may hold more unacknowledged messages than they do.
        automatic: whether its consumers need not acknowledge, so that no prefetch limits what they are sent.
        standstill: whether nothing is delivered or acknowledged in `run`.
        unusual: whether publishes are far above the baseline of this hour, with acknowledgements not below theirs.
        polled: whether it has no consumer and is polled; then `run` has its low points only.
    """

    queue: Queue
    run: Series[Queue]
    publish_rate: float
    consume_rate: float
    publish_rate_before: float | None
    has_room: bool
    unusual: bool
    standstill: bool = False
    automatic: bool = False
    polled: bool = False

    @property
    def reason(self) -> str:
        """What is at its limit, as a key for the variants of the page."""
        if self.standstill or self.polled:
            return "standstill" if self.standstill else "polled"
        if self.publish_rate_before is not None:
            return "surge"
        return "unusual_load" if self.unusual and not self.has_room else "queue_limit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers and ready messages, and those that are polled."""
    for queue in view.queues:
        if not queue.messages_ready or queue.type == "stream" or not view.moved(queue, "publish"):
            continue
        growth = (_growth(view, queue) if queue.consumers else None) or _polled(view, queue)
        if growth is None:
            continue
        usual = None if growth.standstill else usual_backlog(view, queue, growth.consume_rate)
        if usual is not None:
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="usual_backlog", facts=usual)
        else:
            yield _finding(view, growth)


def _growth(view: View, queue: Queue) -> QueueGrowth | None:
    limits = view.limits(queue)
    history = view.history(queue)

    def grows(pair: Series[Queue]) -> bool:
        gained = _ready(pair[-1].value) - _ready(pair[0].value)
        return gained > max(0.0, limits.queues.overload_share * delta(pair, "publish"))

    run = latest_run(history, limits.interval, grows)
    if not run:
        return None
    allowed = may_hold(view, queue)
    quiet = stretch(run, lambda older, newer: delta((older, newer), "deliver", *CONSUMED) == 0)
    links = view.links(queue)
    unlimited = bool(links) and all(link.consumer.ack_required is False for link in links)
    # Without acknowledgements a full socket is the limit, and it takes messages in lumps.
    if span(quiet) >= limits.interval and not (unlimited and delta(run, *CONSUMED)):
        # A queue that hands over to a consumer of higher priority has a rule of its own: sac-stuck.
        return None if successors(view, queue) else _stopped(queue, quiet, limits.early, allowed, unlimited=unlimited)
    seconds, began = span(run), run[0].at.mono
    published, consumed = delta(run, "publish") / max(seconds, 1.0), delta(run, *CONSUMED) / max(seconds, 1.0)
    if seconds < limits.early or consumed <= 0 or _ready(queue) < limits.queues.loss_skew * published:
        return None
    if delta(run, "redeliver") > 0.5 * delta(run, "deliver"):
        return None
    before = _publish_rate_before(history, began, published, consumed, limits.queues.overload_surge, limits.interval)
    automatic = delta(run, "deliver_no_ack") > delta(run, "deliver")
    has_room = automatic or _has_room(queue, allowed)
    unusual = _unusual(view, queue, published, consumed)
    if before is None and not has_room and not unusual:
        return None
    return QueueGrowth(
        queue=queue,
        run=run,
        publish_rate=published,
        consume_rate=consumed,
        publish_rate_before=before,
        has_room=has_room,
        unusual=unusual,
        automatic=automatic,
    )


def _polled(view: View, queue: Queue) -> QueueGrowth | None:
    """Return the growth of a queue that is polled more slowly than messages arrive; None if it is not."""
    lows = polled_backlog(view, queue)
    seconds = span(lows)
    if not lows or _ready(queue) < view.limits(queue).queues.loss_skew * delta(lows, "publish") / seconds:
        return None
    return QueueGrowth(
        queue=queue,
        run=lows,
        publish_rate=delta(lows, "publish") / seconds,
        consume_rate=delta(lows, *CONSUMED) / seconds,
        publish_rate_before=None,
        has_room=False,
        unusual=False,
        polled=True,
    )


def _has_room(queue: Queue, allowed: int | None) -> bool:
    return allowed is not None and (queue.messages_unacked or 0) < 0.5 * allowed


def _stopped(
    queue: Queue, quiet: Series[Queue], early: float, allowed: int | None, *, unlimited: bool
) -> QueueGrowth | None:
    """Return the growth of a queue that delivers nothing to consumers that may hold more; None if too early."""
    seconds = span(quiet)
    if seconds < early or not (unlimited or _has_room(queue, allowed)):
        return None
    return QueueGrowth(
        queue=queue,
        run=quiet,
        publish_rate=delta(quiet, "publish") / seconds,
        consume_rate=0.0,
        publish_rate_before=None,
        has_room=True,
        unusual=False,
        standstill=True,
        automatic=unlimited,
    )


def _unusual(view: View, queue: Queue, published: float, consumed: float) -> bool:
    """Return whether the load is unusual for this hour, even if it changed before the window."""
    more = is_more(view, published, of_queue(view, queue, "published"))
    return more and not is_less(view, consumed, of_queue(view, queue, "acked"))


def _publish_rate_before(
    history: Series[Queue], began: float, published: float, consumed: float, surge: float, interval: float
) -> float | None:
    """Return the publish rate before the growth, if it was clearly lower and consumers kept up; else None."""
    # Before its first publish is counted, a queue is new.
    counted = tuple(seen for seen in history if seen.at.mono <= began and seen.value.stats.publish is not None)
    past = last(counted, 60.0)
    seconds = span(past)
    if seconds < 4.0:
        return None
    published_then, consumed_then = delta(past, "publish") / seconds, delta(past, *CONSUMED) / seconds
    # The mean is too low if the publishers started within that time.
    latest = last(past, interval)
    published_then = max(published_then, delta(latest, "publish") / max(1.0, span(latest)))
    keeps_up = consumed_then >= 0.8 * published_then and published_then > 0
    surged = published >= surge * published_then and consumed >= 0.8 * consumed_then
    return published_then if keeps_up and surged else None


def _ready(queue: Queue | None) -> int:
    return (queue.messages_ready or 0) if queue is not None else 0


def _finding(view: View, growth: QueueGrowth) -> Finding:
    queue, limits, seconds = growth.queue, view.limits(growth.queue), span(growth.run)
    limit = limits.consumers.stuck_long if growth.standstill else limits.queues.overload_for
    severity = Severity.WARNING if seconds >= limit else Severity.INFO
    channels = poller(view, queue) if growth.polled else ()
    connections = [each for channel in channels if (each := view.connection(channel.connection_name))]
    clients = sorted({name for each in connections if (name := client_name(each))})
    involved = involved_queue(queue, view.links(queue))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=growth.run[0].at.iso(),
        facts=_facts(growth, limit, seconds)
        | {"only_one": admits_only_one(queue, view.links(queue)), "pollers": list[Fact](clients)},
        certainty=certainty(severity, seconds, limit),
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="rates",
                source=source(
                    "/api/queues",
                    "message_stats.publish",
                    "message_stats.ack",
                    "message_stats.get_no_ack" if growth.polled else "message_stats.deliver_no_ack",
                ),
            ),
            Evidence(
                key="ready", value=_ready(queue), unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")
            ),
            Evidence(
                key="unacked",
                value=queue.messages_unacked,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged", "consumers"),
            ),
            *queue_baselines(view, queue, "published", "acked", "ready"),
        ),
        involved=replace(
            involved,
            channels=(*involved.channels, *(each.name for each in channels)),
            connections=(*involved.connections, *(each.name for each in connections)),
            clients=(*involved.clients, *clients),
        ),
    )


def _facts(growth: QueueGrowth, limit: float, seconds: float) -> dict[str, Fact]:
    queue = growth.queue
    needed = -(-growth.publish_rate * (queue.consumers or 1) // max(growth.consume_rate, 0.1))
    return {
        "queue": queue_facts(queue),
        "reason": growth.reason,
        "automatic": growth.automatic,
        "ready": _ready(queue),
        "unacked": queue.messages_unacked,
        "consumers": queue.consumers,
        "consumers_needed": int(needed),
        "publish_rate": growth.publish_rate,
        "consume_rate": growth.consume_rate,
        "publish_rate_before": growth.publish_rate_before,
        "work_seconds": _ready(queue) / growth.consume_rate if growth.consume_rate else None,
        "growing_seconds": seconds,
        "warning_after_seconds": limit,
    }
