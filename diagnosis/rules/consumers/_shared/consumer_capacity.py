"""Finds queues that grow although their consumers work at capacity: they hold all they may, and acknowledge."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil

from ackscope.baselines import Band
from ackscope.findings import Certainty, Evidence, Fact, Facts, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.hold_time import HoldTime, RoundTrip, advised_prefetch, hold_time, may_hold, prefetch, round_trip
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.objects import admits_only_one, client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.pace_change import Pace, pace_change
from diagnosis.rules.consumers._shared.sessions import SETTLED_BY, counted_history, may_take, session_evidence
from diagnosis.rules.consumers._shared.stalled_consumers import stalls
from diagnosis.rules.consumers._shared.standstill import handling_time, held, ready, unsettled
from diagnosis.rules.consumers._shared.whole_prefetches import WholePrefetches, whole_prefetches
from diagnosis.rules.publishers._shared.native_balance import balance, with_returns
from diagnosis.series import delta, last, rising, span
from diagnosis.thresholds import Thresholds
from diagnosis.usual import band_facts, is_less, is_more, of_queue, queue_baselines, usual_backlog
from diagnosis.window import Series

_LATE = 1.2
"""Times the longest pause between two acknowledgements that the next pause may last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturatedQueue:
    """A queue that grows while its consumers work at capacity.

    Attributes:
        links: the active consumers that acknowledge; empty if the broker does not list them.
        consumers: how many they are.
        prefetch_total: messages that they may hold in total; 0 if the broker does not list them, or without a limit.
        prefetch: the largest prefetch of them; 0 is no limit.
        work: what they held and acknowledged while the queue grew.
        growing: the readings during which the queue grew.
        warning_after_seconds: it is a warning once it has grown for this long and enough work is waiting.
        trip: the round trip to its node; None if no probe measures it.
        usual: facts of the shared reason `usual_backlog`; None if the backlog is not usual.
        compared: `{"change", "band_of"}`: whether consumers acknowledge less than usual (`acked_less`) or more is
            published (`published_more`); None if neither is known.
        change: what changed before it began to grow, see `pace_change`; None if that is not known.
        lumps: how they acknowledge their whole prefetch at once and nothing in between; None if they do not.
        baselines: baseline bands as evidence.
    """

    queue: Queue
    links: tuple[ConsumerPath, ...]
    prefetch_total: int
    prefetch: int
    consumers: int
    work: HoldTime
    growing: Series[Queue]
    severity: Severity
    warning_after_seconds: float
    trip: RoundTrip | None
    usual: Facts | None
    compared: Facts | None
    change: Facts | None
    lumps: WholePrefetches | None
    baselines: tuple[Evidence, ...]

    @property
    def growing_seconds(self) -> float:
        """Seconds for which the queue has been seen growing."""
        return span(self.growing)

    @property
    def backlog_seconds(self) -> float:
        """Minimum seconds that a message published now will wait."""
        return (self.queue.messages_ready or 0) / self.work.ack_rate


def saturated_queues(view: View) -> tuple[SaturatedQueue, ...]:
    """Return all queues whose consumers are at capacity, in the order of the view."""
    return per_view(view, _saturated)


def _saturated(view: View) -> tuple[SaturatedQueue, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[SaturatedQueue]:
    before = _ready_before(view)
    for queue in view.queues:
        if not (queue.consumers and queue.messages_ready and queue.messages_unacked) or queue.type == "stream":
            continue
        # A cheap check, so that the whole history is read only of queues that grow.
        if queue.details_at is None and queue.messages_ready <= before.get(queue.key, 0):
            continue
        links = view.links(queue)
        if links and all(link.session for link in links):
            history, total = counted_history(view, queue, links), may_take(links)
            if total is None or not delta(last(history, view.thresholds.interval), "ack"):
                continue
            if _mostly_returned(view, queue):
                continue
        elif _acknowledges(view, queue):
            history, total = view.history(queue), may_hold(view, queue)
        else:
            continue
        found = _judge(view, queue, total, history) if total is not None else _without_limit(view, queue, history)
        if found is not None:
            yield found


def _acknowledges(view: View, queue: Queue) -> bool:
    """Return whether consumers acknowledged lately, or pause for no longer than before: jobs and batches take time."""
    if view.moved(queue, "ack"):
        return True
    history = view.history(queue)
    stalled = unsettled(history)
    return span(stalled) <= _LATE * handling_time(history, stalled)


def _mostly_returned(view: View, queue: Queue) -> bool:
    """Return whether AMQP 1.0 consumers return most of what they are sent: a loop, which has its own rule."""
    recent = last(with_returns(balance(view, queue)), view.limits(queue).consumers.slow_for)
    return delta(recent, "redeliver") > view.limits(queue).consumers.requeue_share * delta(recent, "deliver")


def _ready_before(view: View) -> dict[tuple[str, str], int]:
    """Return the messages ready in each queue one interval ago."""
    readings = view.window.readings("queues")
    for seen in reversed(readings):
        if readings[-1].at.since(seen.at) >= view.thresholds.interval:
            return {queue.key: queue.messages_ready or 0 for queue in seen.value}
    return {}


def _judge(view: View, queue: Queue, prefetch_total: int, history: Series[Queue]) -> SaturatedQueue | None:
    limits = view.limits(queue)
    growing = growing_readings(limits, history)
    work, stuck = hold_time(growing), _stuck(view, queue)
    if work is not None and stuck:
        idle = {link.channel.name: link.channel.messages_unacked or 0 for link in stuck if link.channel}
        work = replace(work, unacked=max(0.0, work.unacked - sum(idle.values())))
        prefetch_total -= sum(prefetch(view, link) or 0 for link in stuck)
    full = limits.consumers.slow_full * prefetch_total
    if work is None or span(growing) < limits.early or work.unacked < full or not outpaced(limits, work, growing):
        return None
    links = tuple(
        link
        for link in view.links(queue)
        if link.consumer.active is not False and link.consumer.ack_required is not False and link not in stuck
    )
    each = {prefetch(view, link) or 0 for link in links}
    lumps = whole_prefetches(history, max(each), len(links)) if len(each) == 1 and not stuck else None
    return replace(
        saturated(view, queue, history, growing, work),
        links=links,
        prefetch_total=prefetch_total,
        prefetch=max(each),
        consumers=len(links),
        change=None
        if stuck or lumps or not queue.settings_known
        else _changed(queue, links, full, work, history, growing),
        lumps=lumps,
    )


def _without_limit(view: View, queue: Queue, history: Series[Queue]) -> SaturatedQueue | None:
    """Return the figures of a queue whose consumers have no prefetch limit, and hold more work than they may leave.

    The broker sends them all it can: until their sockets are full, the backlog is with them, and after that in the
    queue. So what grows is both together. Where they hold little work, the network or the broker may be the limit.
    """
    links = tuple(link for link in view.links(queue) if link.consumer.active is not False)
    unlimited = links and all(prefetch(view, link) == 0 and link.consumer.ack_required is not False for link in links)
    if not unlimited or queue.type == "quorum":
        return None
    limits = view.limits(queue)
    growing = growing_readings(limits, history, lambda seen: ready(seen) + held(seen))
    work = hold_time(growing)
    if work is None or span(growing) < limits.early or not outpaced(limits, work, growing):
        return None
    if held(queue) < limits.consumers.slow_wait * work.ack_rate:
        return None
    # While all is with the consumers, it is a warning after this time: see unacked-grows.
    after = limits.consumers.grows_for
    return replace(
        saturated(view, queue, history, growing, work),
        links=links,
        consumers=len(links),
        severity=Severity.WARNING if span(growing) >= after else Severity.INFO,
        warning_after_seconds=after,
    )


def growing_readings(limits: Thresholds, history: Series[Queue], size: Callable[[Queue], int] = ready) -> Series[Queue]:
    """Return the readings during which a queue grew; over longer steps if that shows a longer time."""
    early = rising(history, limits.interval, size)
    late = rising(history, max(limits.interval, limits.consumers.slow_for / 4), size)
    return late if span(late) >= limits.consumers.slow_for else early


def outpaced(limits: Thresholds, work: HoldTime, growing: Series[Queue]) -> bool:
    """Return whether more is published than is acknowledged, and deliveries are not mostly of returned messages.

    Growth within a tenth of the publish rate is noise; mostly redeliveries are a loop, which has its own rule.
    """
    redelivered, delivered = delta(growing, "redeliver"), delta(growing, "deliver")
    return work.publish_rate >= 1.1 * work.ack_rate and redelivered <= limits.consumers.requeue_share * delivered


def saturated(
    view: View, queue: Queue, history: Series[Queue], growing: Series[Queue], work: HoldTime
) -> SaturatedQueue:
    """Return what the figures of such a queue tell, without its consumers."""
    limits = view.limits(queue)
    waits = (queue.messages_ready or 0) / work.ack_rate >= limits.consumers.slow_wait
    grown = span(growing)
    if len(growing) == len(history):
        # It never shrank since ackscope started watching, so the backlog tells for how long it has grown.
        grown = max(grown, (queue.messages_ready or 0) / (work.publish_rate - work.ack_rate))
    return SaturatedQueue(
        queue=queue,
        links=(),
        prefetch_total=0,
        prefetch=0,
        consumers=queue.consumers or 1,
        work=work,
        growing=growing,
        severity=Severity.WARNING if grown >= limits.consumers.slow_for and waits else Severity.INFO,
        warning_after_seconds=limits.consumers.slow_for,
        trip=round_trip(view, queue.node),
        usual=usual_backlog(view, queue, work.ack_rate),
        compared=_compared(view, queue, work),
        change=None,
        lumps=None,
        baselines=queue_baselines(view, queue, "acked", "published", "ready"),
    )


def _stuck(view: View, queue: Queue) -> tuple[ConsumerPath, ...]:
    """Return the consumers that acknowledge nothing while others work: what they hold says nothing about the pace."""
    partly = (stall for stall in stalls(view) if stall.queue.key == queue.key and not stall.whole_queue)
    return tuple(link for stall in partly for link in stall.stuck)


def _changed(
    queue: Queue,
    links: tuple[ConsumerPath, ...],
    most: float,
    work: HoldTime,
    history: Series[Queue],
    growing: Series[Queue],
) -> Facts | None:
    """Return what changed before a queue began to grow; `most` is what its consumers hold at capacity."""
    free = (seen.at for seen in reversed(history) if (seen.value.messages_unacked or 0) < most)
    until = next(free, growing[0].at).iso()
    before = tuple(seen for seen in history if seen.at.mono <= growing[0].at.mono)
    pace = Pace(len(links), work.ack_rate, work.publish_rate, work.seconds)
    return pace_change(pace, before, until, only_one=admits_only_one(queue, links) is not None)


def _compared(view: View, queue: Queue, work: HoldTime) -> Facts | None:
    """Return whether the consumers or the load changed, compared with the baseline of this hour."""
    acked, published = of_queue(view, queue, "acked"), of_queue(view, queue, "published")
    if isinstance(acked, Band) and is_less(view, work.ack_rate, acked):
        return {"change": "acked_less", "band_of": band_facts(acked, "acked")}
    if isinstance(published, Band) and is_more(view, work.publish_rate, published):
        return {"change": "published_more", "band_of": band_facts(published, "published")}
    return None


def network_bound(view: View, found: SaturatedQueue) -> bool | None:
    """Return whether the network round trip takes the time, and not the handler; None if unknown."""
    limits = view.limits(found.queue).consumers
    hold = found.work.hold
    if found.prefetch == 0 or found.prefetch > limits.prefetch_small or hold > limits.prefetch_unknown:
        return False
    if hold <= limits.prefetch_quick:
        return True
    return hold <= limits.prefetch_round_trips * found.trip.seconds if found.trip else None


def saturation_finding(rule: str, found: SaturatedQueue, facts: Facts) -> Finding:
    """The finding for one queue.

    Args:
        rule: slow-consumer or prefetch-too-small.
        found: the queue.
        facts: what only this rule's page names.
    """
    queue, work = found.queue, found.work
    priorities = queue.setting("max-priority") if queue.settings_known else None
    common: dict[str, Fact] = {
        "queue": queue_facts(queue),
        "max_priority": priorities if isinstance(priorities, int) else None,
        "unlisted": not found.links,
        "clients": client_names(found.links),
        "consumers": found.consumers,
        "consumers_needed": ceil(found.consumers * work.publish_rate / work.ack_rate),
        "only_one": admits_only_one(queue, found.links),
        "prefetch": found.prefetch,
        "prefetch_total": found.prefetch_total,
        "prefetch_advised": advised_prefetch(queue, work.ack_rate / found.consumers),
        "ready": queue.messages_ready or 0,
        "unacked": work.unacked,
        "publish_rate": work.publish_rate,
        "ack_rate": work.ack_rate,
        "hold_seconds": work.hold,
        "seconds_per_message": found.consumers / work.ack_rate,
        "backlog_seconds": found.backlog_seconds,
        "round_trip_seconds": found.trip.seconds if found.trip else None,
        "warning_after_seconds": found.warning_after_seconds,
        "suspects": [],
    }
    early = found.severity is Severity.INFO and found.growing_seconds < found.warning_after_seconds
    return Finding(
        rule=rule,
        severity=found.severity,
        subject=queue_subject(queue),
        since=found.growing[0].at.iso(),
        facts={**common, **facts},
        evidence=tuple(_evidence(found)),
        involved=involved_consumers((queue,), found.links),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=found.growing_seconds,
    )


def _evidence(found: SaturatedQueue) -> Iterator[Evidence]:
    queue, work = found.queue, found.work
    native = any(link.session for link in found.links)
    for key, value, field in (("published", work.publish_rate, "publish"), ("acked", work.ack_rate, "ack")):
        counted = source("/api/queues", f"message_stats.{field}")
        by_sessions = SETTLED_BY + source("/api/queues", "messages")
        yield Evidence(key=key, value=value, unit=Unit.PER_SECOND, source=by_sessions if native else counted)
    yield Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready"),
    )
    yield Evidence(
        key="unacked",
        value=round(work.unacked),
        unit=Unit.MESSAGES,
        source=SETTLED_BY + source("/api/queues", "messages_unacknowledged")
        if native
        else source("/api/queues", "messages_unacknowledged", "message_stats.ack")
        + source("/api/consumers", "prefetch_count"),
    )
    if found.trip:
        yield Evidence(
            key="round_trip",
            value=found.trip.seconds,
            unit=Unit.SECONDS,
            source=source("probe rtt", "declare"),
            facts={"node": found.trip.node},
        )
    yield from found.baselines
    for link in found.links[:3]:
        if link.session:
            yield session_evidence(link)
            continue
        yield Evidence(
            key="consumer",
            value=link.consumer.prefetch_count,
            source=source("/api/consumers", "prefetch_count"),
            facts={"held_by": consumer_facts(link)},
        )
