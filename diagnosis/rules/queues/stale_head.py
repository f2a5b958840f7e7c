"""stale-head (C02): the oldest message of a queue grows old although its consumers work.

Its age is told by the timestamp that publishers set (classic queues only), or follows from first in, first out: while
fewer messages left a queue than it held at some moment, the oldest one now was there then.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues.balance import TAKEN, balance
from diagnosis.rules.queues.telling import about, named
from diagnosis.series import delta, span
from diagnosis.usual_text import usual_backlog
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, list_consumers, place

NAME = "stale-head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The oldest message of a queue.

    Attributes:
        age: seconds; at least so much where it follows from the order.
        stamped: it is what its publisher's clock says.
        overtaken: messages acknowledged while it waited, as far as was watched.
    """

    age: float
    stamped: bool
    overtaken: int


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue whose consumers work and that holds messages."""
    for queue in view.queues:
        if not queue.consumers or not queue.messages or queue.type == "stream":
            continue
        if queue.head_message_timestamp is None and not queue.messages_ready:
            continue
        if not view.moved(queue, "ack") and not view.moved(queue, "deliver_no_ack"):
            continue
        limits = view.limits(queue).queues
        head = _head(view, queue, limits.stale_early)
        if head is None:
            continue
        stands = head.stamped and _stands(view, queue)
        passed = stands and head.overtaken >= limits.stale_overtaken * queue.messages
        if head.stamped and not stands and not _may_be_as_old(view.history(queue), head.age):
            if head.age >= limits.stale_after:
                yield SuppressedReport(
                    rule=NAME,
                    subject=about(queue),
                    because=(
                        f"its oldest message is {lasting(head.age)} old by its timestamp, and all that was there "
                        "before has passed since: it was old when it came, or its publisher's clock is wrong"
                    ),
                )
        elif head.age >= limits.stale_after:
            # One that others overtake is no matter of the backlog.
            usual = None if passed else usual_backlog(view, queue, _ack_rate(view, queue))
            if usual is None:
                yield _finding(view, queue, head, Severity.WARNING, passed=passed)
            else:
                because = f"it waits in line, behind as many as every time at this hour: {usual}"
                yield SuppressedReport(rule=NAME, subject=about(queue), because=because)
        elif passed and head.age >= limits.stale_early:
            yield _finding(view, queue, head, Severity.INFO, passed=True)


def _head(view: View, queue: Queue, early: float) -> Head | None:
    history = view.history(queue)
    if queue.head_message_timestamp is not None:
        age = view.now.wall - queue.head_message_timestamp
        began = history[-1].at.wall - age
        since = tuple(seen for seen in history if seen.at.wall >= began)
        return Head(age=age, stamped=True, overtaken=delta(since, *TAKEN)) if age >= early else None
    waited = _residence(history, view.limits(queue).queues.stale_after)
    return None if waited is None else Head(age=waited, stamped=False, overtaken=0)


def _residence(history: Series[Queue], least: float) -> float | None:
    """Seconds that the oldest message waits at least, if it is first in, first out; None where that is too little."""
    final = history[-1]
    old = [seen for seen in history if final.at.since(seen.at) >= least]
    # From the nearest on: of most queues it says already that all has passed since.
    found = None
    for seen in reversed(old):
        since = tuple(each for each in history if each.at.mono >= seen.at.mono)
        whole = balance(since)
        if whole is None or seen.value.messages is None:
            break
        # Whatever left: taken, rejected, expired. Counters are current and the number of messages is seconds old.
        left = whole.taken + max(0, whole.missing)
        if left >= 0.9 * seen.value.messages:
            break
        found = final.at.since(seen.at)
    return found


def _may_be_as_old(history: Series[Queue], age: float) -> bool:
    """Whether a message of that age may still be there, as far as was watched: not all has passed since."""
    watched = span(history)
    return watched <= 0 or _residence(history, min(age, watched)) is not None


def _ack_rate(view: View, queue: Queue) -> float | None:
    """Acknowledged a second, of what was watched; None where nothing was."""
    history = view.history(queue)
    return delta(history, "ack") / span(history) if span(history) > 0 else None


def _stands(view: View, queue: Queue) -> bool:
    """Whether the same message was the oldest for a while: every reading of the last seconds shows its timestamp."""
    lately = [
        s for s in view.history(queue) if view.now.since(s.at) <= view.thresholds.early + view.thresholds.interval
    ]
    return len(lately) >= 2 and len({_stamp(seen) for seen in lately}) == 1


def _stamp(seen: Seen[Queue]) -> int | None:
    return seen.value.head_message_timestamp


def _finding(view: View, queue: Queue, head: Head, severity: Severity, *, passed: bool) -> FindingReport:
    about_age = f"{lasting(head.age)} old" if head.stamped else f"at least {lasting(head.age)} old"
    if passed:
        cause = (
            f"{amount(head.overtaken, 'message')} were acknowledged while it waited: it is overtaken. A consumer that "
            "holds it without acknowledging does that, or messages of a higher priority."
        )
    else:
        cause = "Messages wait in line: all that came before must be worked off first."
    source = "/api/queues head_message_timestamp" if head.stamped else "/api/queues messages, message_stats.ack"
    told = "by the clock of its publisher" if head.stamped else "by the order of the queue: fewer left than were there"
    limit = view.limits(queue).queues.stale_after
    later = "" if severity is Severity.WARNING else f"; a warning comes at {lasting(limit)}"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=Instant(wall=view.now.wall - head.age, mono=view.now.mono - head.age).iso(),
        summary=f"The oldest message in {named(queue)} is {about_age}, though its consumers work{later}",
        cause=cause,
        evidence=(
            EvidenceReport(
                what="age of the oldest message",
                value=f"{about_age}, {told}",
                expected=f"below {lasting(limit)}",
                source=source,
            ),
            EvidenceReport(
                what="ready, unacknowledged",
                value=f"{queue.messages_ready} and {queue.messages_unacked}",
                source="/api/queues messages_ready, messages_unacknowledged",
            ),
        ),
        next_steps=(
            (
                f"see who holds messages for long: {list_consumers(queue)}; "
                "rabbitmqctl list_channels connection name prefetch_count messages_unacknowledged"
            ),
            f"see whether it has priorities: rabbitmqctl list_queues -p {place(queue).split()[1]} name arguments",
            "restart a consumer that holds one message and acknowledges others: it comes again, first in line",
        ),
        runbook=runbook(NAME),
    )
