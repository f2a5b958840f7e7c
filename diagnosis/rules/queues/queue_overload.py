"""queue-overload (C01): more comes than the consumers of a queue can take, and it is not they who changed.

Two cases. A surge: publishes came to be faster, the consumers work as fast as before. Or consumers that wait although
messages do: they hold less than they may, or need not acknowledge. Full consumers that are slow are another cause
(slow-consumer, prefetch-too-small), and this is its consequence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.hold_time import may_hold
from diagnosis.rules.queues.balance import TAKEN, all_along
from diagnosis.rules.queues.telling import about, named, so_far
from diagnosis.series import delta, last, span
from diagnosis.usual_text import grows_as_usual, is_less, is_more, lines, of_queue, usual_backlog
from diagnosis.window import Series
from diagnosis.words import amount, lasting, list_consumers

NAME = "queue-overload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A queue that grows while its consumers work; rates are messages a second.

    Attributes:
        lately: the time in which it grew.
        before: published a second before; None where there was no such time.
        room: the consumers might hold more than they do.
        unusual: what comes is far above what is usual at this hour, and what is taken is not below it.
    """

    queue: Queue
    lately: Series[Queue]
    published: float
    taken: float
    before: float | None
    room: bool
    unusual: bool

    @property
    def surge(self) -> bool:
        """The load changed."""
        return self.before is not None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with consumers in which messages wait."""
    for queue in view.queues:
        if not queue.consumers or not queue.messages_ready or queue.type == "stream":
            continue
        if not view.moved(queue, "publish"):
            continue
        growth = _growth(view, queue)
        if growth is None:
            continue
        usual = usual_backlog(view, queue, growth.taken)
        if usual is not None:
            yield SuppressedReport(rule=NAME, subject=about(queue), because=grows_as_usual(usual))
        else:
            yield _finding(view, growth)


def _growth(view: View, queue: Queue) -> Growth | None:
    limits = view.limits(queue)
    history = view.history(queue)

    def grows(pair: Series[Queue]) -> bool:
        gained = _ready(pair[-1].value) - _ready(pair[0].value)
        return gained > max(0.0, limits.queues.overload_share * delta(pair, "publish"))

    lately = all_along(history, limits.interval, grows)
    if not lately:
        return None
    seconds, began = span(lately), lately[0].at.mono
    published, taken = delta(lately, "publish") / max(seconds, 1.0), delta(lately, *TAKEN) / max(seconds, 1.0)
    if seconds < limits.early or taken <= 0 or _ready(queue) < limits.queues.loss_skew * published:
        return None
    if delta(lately, "redeliver") > 0.5 * delta(lately, "deliver"):
        return None
    before = _before(history, began, published, taken, limits.queues.overload_surge)
    allowed = may_hold(view, queue)
    automatic = delta(lately, "deliver_no_ack") > delta(lately, "deliver")
    room = automatic or (allowed is not None and (queue.messages_unacked or 0) < 0.5 * allowed)
    unusual = _unusual(view, queue, published, taken)
    if before is None and not room and not unusual:
        return None
    return Growth(
        queue=queue, lately=lately, published=published, taken=taken, before=before, room=room, unusual=unusual
    )


def _unusual(view: View, queue: Queue, published: float, taken: float) -> bool:
    """The load changed, by what is usual at this hour: also where it did before we watched."""
    more = is_more(view, published, of_queue(view, queue, "published"))
    return more and not is_less(view, taken, of_queue(view, queue, "acked"))


def _before(history: Series[Queue], began: float, published: float, taken: float, surge: float) -> float | None:
    """Published a second before it grew, where that was clearly less and consumers kept up; None otherwise."""
    past = last(tuple(seen for seen in history if seen.at.mono <= began), 60.0)
    seconds = span(past)
    if seconds < 4.0:
        return None
    was, took = delta(past, "publish") / seconds, delta(past, *TAKEN) / seconds
    kept_up = took >= 0.8 * was and was > 0
    return was if kept_up and published >= surge * was and taken >= 0.8 * took else None


def _ready(queue: Queue | None) -> int:
    return (queue.messages_ready or 0) if queue is not None else 0


def _finding(view: View, growth: Growth) -> FindingReport:
    queue, limit, seconds = growth.queue, view.limits(growth.queue).queues.overload_for, span(growth.lately)
    severity = Severity.WARNING if seconds >= limit else Severity.INFO
    waits = _ready(queue) / growth.taken
    if growth.surge:
        cause = (
            f"Publishes rose from {growth.before:.1f} to {growth.published:.1f} a second; its consumers take "
            f"{growth.taken:.1f}, as fast as before."
        )
    elif growth.unusual and not growth.room:
        cause = (
            f"{growth.published:.1f} messages a second come, far more than is usual at this hour; its consumers take "
            f"{growth.taken:.1f}, no less than usual."
        )
    else:
        cause = (
            f"{growth.published:.1f} messages a second come and {growth.taken:.1f} are taken, though its consumers "
            "may hold more than they do: the queue or the way to them is the limit."
        )
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=growth.lately[0].at.iso(),
        summary=(
            f"More comes to {named(queue)} than is taken: {amount(_ready(queue), 'message')} waiting, "
            f"{lasting(waits)} of work; {so_far(severity, seconds, limit, 'a burst')}"
        ),
        cause=cause,
        evidence=(
            EvidenceReport(
                what="published, taken",
                value=f"{growth.published:.1f} and {growth.taken:.1f} messages a second over {lasting(seconds)}",
                expected="as many taken as published",
                source="/api/queues message_stats.publish, ack, deliver_no_ack",
            ),
            EvidenceReport(
                what="waiting",
                value=amount(_ready(queue), "message"),
                expected="not growing",
                source="/api/queues messages_ready",
            ),
            EvidenceReport(
                what="held by consumers",
                value=f"{queue.messages_unacked} by {amount(queue.consumers or 0, 'consumer')}",
                source="/api/queues messages_unacknowledged, consumers",
            ),
            *lines(view, queue, "published", "acked", "ready"),
        ),
        next_steps=_steps(growth),
        runbook=runbook(NAME),
    )


def _steps(growth: Growth) -> tuple[str, ...]:
    queue = growth.queue
    needed = -(-growth.published * (queue.consumers or 1) // max(growth.taken, 0.1))
    who = "rabbitmqctl list_channels connection name vhost messages_unconfirmed | sort"
    return (
        (
            f"see who consumes, and start more: about {needed:.0f} of them keep up, {queue.consumers} run: "
            f"{list_consumers(queue)}"
        ),
        f"see who publishes so much, and whether it is meant to: {who}",
        "if it is a burst that ends, wait: see whether memory and disk last that long",
        "later: a length limit with overflow=reject-publish, so that publishers slow down with it",
    )
