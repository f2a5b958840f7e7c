"""stale-head (C02): the oldest message of a queue is old although its consumers work.

Its age comes from the timestamp that publishers set (classic queues only), or from first in, first out: if fewer
messages left a queue than it had at some time, the oldest message now was already there then.

A burst in a queue that drains makes those wait that come after it (`diagnosis.rules.queues._shared.bursts`). That is
information much earlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Severity, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.purpose import CONSUMED
from diagnosis.rules.queues._shared.bursts import BurstAhead, burst_ahead
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import delta, span
from diagnosis.usual import usual_backlog
from diagnosis.window import Series

NAME = "stale-head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The oldest message of a queue.

    Attributes:
        age: age in seconds; a minimum if it follows from the order of the queue.
        stamped: whether the age is from a timestamp, by its publisher's clock.
        consumed: messages consumed since it was published, within the window.
    """

    age: float
    stamped: bool
    consumed: int


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with messages whose consumers work."""
    for queue in view.queues:
        if not queue.consumers or not queue.messages or queue.type == "stream":
            continue
        if queue.head_message_timestamp is None and not queue.messages_ready:
            continue
        if not view.moved(queue, "ack") and not view.moved(queue, "deliver_no_ack"):
            continue
        limits = view.limits(queue).queues
        head = _head(view, queue, limits.stale_early)
        waits = (head is None or head.age < limits.stale_after) and _behind_burst(view, queue, limits.stale_burst)
        if waits:
            yield _finding(view, queue, waits[0], Severity.INFO, overtaken=False, burst=waits[1])
            continue
        if head is None:
            continue
        unchanged = head.stamped and _unchanged(view, queue)
        overtaken = unchanged and head.consumed >= limits.stale_overtaken * queue.messages
        if head.stamped and not unchanged and not _may_be_as_old(view.history(queue), head.age):
            if head.age >= limits.stale_after:
                facts = {"age_seconds": head.age}
                yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="old_when_published", facts=facts)
        elif head.age >= limits.stale_after:
            # A message that others overtake is not related to the backlog.
            usual = None if overtaken else usual_backlog(view, queue, _ack_rate(view, queue))
            if usual is None:
                burst = None if overtaken else burst_ahead(view, queue)
                yield _finding(view, queue, head, Severity.WARNING, overtaken=overtaken, burst=burst)
            else:
                yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="behind_usual_backlog", facts=usual)
        elif overtaken and head.age >= limits.stale_early:
            yield _finding(view, queue, head, Severity.INFO, overtaken=True)


def _head(view: View, queue: Queue, early: float) -> Head | None:
    history = view.history(queue)
    if queue.head_message_timestamp is not None:
        # The broker's clock agrees with those of its publishers more likely than ours.
        age = view.broker_wall - queue.head_message_timestamp
        began = history[-1].at.wall - age
        since = tuple(seen for seen in history if seen.at.wall >= began)
        return Head(age=age, stamped=True, consumed=delta(since, *CONSUMED)) if age >= early else None
    waited = _residence(history, view.limits(queue).queues.stale_after)
    return None if waited is None else Head(age=waited, stamped=False, consumed=0)


def _behind_burst(view: View, queue: Queue, least: float) -> tuple[Head, BurstAhead] | None:
    """Return the age of the oldest message and the burst that it is of; None unless others wait behind a burst."""
    waited = _residence(view.history(queue), least)
    burst = None if waited is None else burst_ahead(view, queue)
    if waited is None or burst is None or usual_backlog(view, queue, _ack_rate(view, queue)) is not None:
        return None
    return Head(age=waited, stamped=False, consumed=0), burst


def _residence(history: Series[Queue], minimum: float) -> float | None:
    """Return the minimum seconds that the oldest message waits, if first in, first out; None if below the minimum."""
    final = history[-1]
    old = [seen for seen in history if final.at.since(seen.at) >= minimum]
    # Latest reading first: for most queues it already shows that all earlier messages have left.
    found = None
    for seen in reversed(old):
        since = tuple(each for each in history if each.at.mono >= seen.at.mono)
        whole = balance(since)
        if whole is None or seen.value.messages is None:
            break
        # Messages that left: consumed, rejected, expired. Counters are current, the number of messages is seconds
        # old.
        left = whole.consumed + max(0, whole.missing)
        if left >= 0.9 * seen.value.messages:
            break
        found = final.at.since(seen.at)
    return found


def _may_be_as_old(history: Series[Queue], age: float) -> bool:
    """Return whether a message of that age may still be there: within the window, not all messages have left since."""
    watched = span(history)
    return watched <= 0 or _residence(history, min(age, watched)) is not None


def _ack_rate(view: View, queue: Queue) -> float | None:
    """Return the acknowledgements per second within the window; None if there were none."""
    history = view.history(queue)
    return delta(history, "ack") / span(history) if span(history) > 0 else None


def _unchanged(view: View, queue: Queue) -> bool:
    """Return whether the same message stayed the oldest: every recent reading shows its timestamp."""
    period = view.thresholds.early + view.thresholds.interval
    recent = [seen.value for seen in view.history(queue) if view.now.since(seen.at) <= period]
    return len(recent) >= 2 and len({seen.head_message_timestamp for seen in recent}) == 1


def _finding(
    view: View, queue: Queue, head: Head, severity: Severity, *, overtaken: bool, burst: BurstAhead | None = None
) -> Finding:
    limit = view.limits(queue).queues.stale_after
    age_source = (
        source("/api/queues", "head_message_timestamp")
        if head.stamped
        else source("/api/queues", "messages", "message_stats.ack")
    )
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=Instant(wall=view.now.wall - head.age, mono=view.now.mono - head.age).iso(),
        facts={
            "queue": queue_facts(queue),
            "age_seconds": head.age,
            "stamped": head.stamped,
            "overtaken": overtaken,
            "burst": None if burst is None else burst.facts(queue),
            "consumed": head.consumed if head.stamped else None,
            "ready": queue.messages_ready,
            "unacked": queue.messages_unacked,
            "warning_after_seconds": limit,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.LIKELY,
        evidence=(
            Evidence(key="age", value=head.age, unit=Unit.SECONDS, source=age_source),
            Evidence(key="messages", source=source("/api/queues", "messages_ready", "messages_unacknowledged")),
        ),
        involved=involved_queue(queue, view.links(queue)),
    )
