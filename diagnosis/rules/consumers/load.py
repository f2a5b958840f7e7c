"""Queues that grow behind consumers which are full and acknowledge: at capacity, for one reason or another."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from ackscope.baselines import Band
from ackscope.findings import Severity
from ackscope.reports import EvidenceReport
from ackscope.snapshot import Queue
from diagnosis.contract import Link, View
from diagnosis.hold_time import HoldTime, RoundTrip, hold_time, may_hold, prefetch, round_trip
from diagnosis.kept import kept
from diagnosis.series import delta, span, steps
from diagnosis.usual_text import is_less, is_more, lines, made_of, of_queue, span_of, usual_backlog
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, whose


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A queue whose consumers work at capacity while it grows.

    Attributes:
        links: the consumers that work.
        allowed: what they may hold together.
        most: the largest prefetch of them; 0 is no limit.
        grew: the stretch of its history in which it grew.
        trip: the round trip to its node; None where no probe measures it.
        usual: why the backlog can be left alone, as large as it is at every such hour; None where it cannot.
        compared: how its rates stand to those that are usual, as a sentence; "" where that is not known.
        bands: what is usual, as evidence.
    """

    queue: Queue
    links: tuple[Link, ...]
    allowed: int
    most: int
    held: HoldTime
    grew: Series[Queue]
    severity: Severity
    trip: RoundTrip | None
    usual: str | None
    compared: str
    bands: tuple[EvidenceReport, ...]

    @property
    def wait(self) -> float:
        """Seconds that a message published now waits at least."""
        return (self.queue.messages_ready or 0) / self.held.ack_rate

    @property
    def each(self) -> float:
        """Seconds that a consumer takes for one message."""
        return len(self.links) / self.held.ack_rate

    @property
    def needed(self) -> int:
        """How many such consumers would keep up."""
        return ceil(len(self.links) * self.held.publish_rate / self.held.ack_rate)

    @property
    def names(self) -> list[str]:
        """The applications that consume."""
        return sorted({client(link.connection, link.consumer.connection_name) for link in self.links})

    @property
    def how_long(self) -> str:
        """What an early finding adds."""
        seconds = lasting(span(self.grew))
        if self.severity is not Severity.INFO:
            return f"seen over {seconds}"
        return f"seen over {seconds}; a burst looks the same, a warning comes when it lasts"


def loads(view: View) -> tuple[Load, ...]:
    """All such queues, in the order of the view."""
    return kept(view, _Loads).found


class _Loads:
    def __init__(self, view: View) -> None:
        self.found = tuple(_find(view))


def _find(view: View) -> Iterator[Load]:
    before = _before(view)
    for queue in view.queues:
        if not (queue.consumers and queue.messages_ready and queue.messages_unacked) or queue.type == "stream":
            continue
        # Cheap, to spare queues that do not grow the whole history.
        if queue.details_at is None and queue.messages_ready <= before.get(queue.key, 0):
            continue
        allowed = may_hold(view, queue) if view.moved(queue, "ack") else None
        if allowed is None:
            continue
        load = _judge(view, queue, allowed)
        if load is not None:
            yield load


def _before(view: View) -> dict[tuple[str, str], int]:
    """Messages that were ready in each queue an interval ago."""
    readings = view.window.readings("queues")
    for seen in reversed(readings):
        if readings[-1].at.since(seen.at) >= view.thresholds.interval:
            return {queue.key: queue.messages_ready or 0 for queue in seen.value}
    return {}


def _judge(view: View, queue: Queue, allowed: int) -> Load | None:
    limits = view.limits(queue)
    history = view.history(queue)
    early = _growing(history, limits.interval)
    late = _growing(history, max(limits.interval, limits.consumers.slow_for / 4))
    grew = late if span(late) >= limits.consumers.slow_for else early
    held = hold_time(grew)
    if held is None or span(grew) < limits.early or held.unacked < limits.consumers.slow_full * allowed:
        return None
    delivered = delta(grew, "deliver")
    # Growth within a tenth of what comes is chance; mostly redelivered is a loop, which has its own rule.
    if held.publish_rate < 1.1 * held.ack_rate or delta(grew, "redeliver") > limits.consumers.requeue_share * delivered:
        return None
    waits = (queue.messages_ready or 0) / held.ack_rate >= limits.consumers.slow_wait
    links = tuple(
        link
        for link in view.links(queue)
        if link.consumer.active is not False and link.consumer.ack_required is not False
    )
    return Load(
        queue=queue,
        links=links,
        allowed=allowed,
        most=max(prefetch(view, link) or 0 for link in links),
        held=held,
        grew=grew,
        severity=Severity.WARNING if span(grew) >= limits.consumers.slow_for and waits else Severity.INFO,
        trip=round_trip(view, queue.node),
        usual=usual_backlog(view, queue, held.ack_rate),
        compared=_compared(view, queue, held),
        bands=lines(view, queue, "acked", "published", "ready"),
    )


def _compared(view: View, queue: Queue, held: HoldTime) -> str:
    """Whether it is the consumers that changed, or the load, by what is usual at this hour."""
    acked, published = of_queue(view, queue, "acked"), of_queue(view, queue, "published")
    if isinstance(acked, Band) and is_less(view, held.ack_rate, acked):
        return f"They acknowledge less than usual: {span_of(acked, 'acked')} {made_of(acked)}."
    if isinstance(published, Band) and is_more(view, held.publish_rate, published):
        return f"More comes than usual: {span_of(published, 'published')} {made_of(published)}."
    return ""


def _growing(history: Series[Queue], seconds: float) -> Series[Queue]:
    """The end of the history in which more messages wait after each step than before."""
    start = None
    for older, newer in reversed(steps(history, seconds)):
        if (newer.value.messages_ready or 0) <= (older.value.messages_ready or 0):
            break
        start = older.at
    return () if start is None else tuple(seen for seen in history if seen.at.mono >= start.mono)


def quick(view: View, load: Load) -> bool | None:
    """Whether the way to the consumer takes the time, and not its handler; None where that cannot be told."""
    limits = view.limits(load.queue).consumers
    if load.most == 0 or load.most > limits.prefetch_small or load.held.hold > limits.prefetch_unknown:
        return False
    if load.held.hold <= limits.prefetch_quick:
        return True
    return load.held.hold <= limits.prefetch_round_trips * load.trip.seconds if load.trip else None


def evidence(load: Load) -> list[EvidenceReport]:
    """What was seen, in figures."""
    queue, held = load.queue, load.held
    items = [
        EvidenceReport(
            what="published, acknowledged",
            value=f"{held.publish_rate:.1f} and {held.ack_rate:.1f} a second over {lasting(held.seconds)}",
            expected="as many acknowledged as published",
            source="/api/queues message_stats.publish, ack",
        ),
        EvidenceReport(
            what="waiting",
            value=f"{amount(queue.messages_ready or 0, 'message')}, {lasting(load.wait)} of work",
            expected="not growing",
            source="/api/queues messages_ready",
        ),
        EvidenceReport(
            what="held by consumers",
            value=f"{held.unacked:.0f} of {load.allowed} allowed, each for {shortly(held.hold)}",
            source="/api/queues messages_unacknowledged, message_stats.ack; /api/consumers prefetch_count",
        ),
    ]
    if load.trip:
        items.append(
            EvidenceReport(
                what=f"round trip to {load.trip.node}", value=shortly(load.trip.seconds), source="probe rtt, p50"
            )
        )
    items += load.bands
    items += [
        EvidenceReport(
            what=whose(link),
            value=f"prefetch {link.consumer.prefetch_count or 'without limit'}",
            source="/api/consumers prefetch_count",
        )
        for link in load.links[:3]
    ]
    return items


def shortly(seconds: float) -> str:
    """A duration of less than seconds too: `0.8 ms`, `40 ms`, `2.0 s`."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
