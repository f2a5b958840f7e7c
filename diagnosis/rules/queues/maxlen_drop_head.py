"""maxlen-drop-head (C03): a full queue drops its oldest messages, by default and without a word to anybody.

Told by three things together: the queue stays at its length limit, its overflow is `drop-head`, and messages vanish
that no client took or rejected. Confirms are all positive.
"""

from collections.abc import Iterator
from functools import partial

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues.balance import Balance, evidence, losing
from diagnosis.rules.queues.telling import about, set_policy, so_far
from diagnosis.series import span
from diagnosis.window import Series
from diagnosis.words import amount, lasting, list_consumers, size

NAME = "maxlen-drop-head"

REFUSES = ("reject-publish", "reject-publish-dlx")
"""Other ways to be full, with a rule of their own: pub-nacked-overflow."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a length limit that drops its oldest messages."""
    for queue in view.queues:
        if not queue.messages_ready or not _limited(queue) or not view.moved(queue, "publish"):
            continue
        found = losing(view, queue, partial(_full, view.limits(queue).queues.full_share))
        if found is None:
            continue
        exchange = queue.setting("dead-letter-exchange")
        if isinstance(exchange, str):
            yield SuppressedReport(
                rule=NAME,
                subject=about(queue),
                because=f"it is full and drops its oldest messages, and they are kept: it dead-letters to {exchange!r}",
            )
            continue
        yield _finding(view, queue, *found)


def _limited(queue: Queue) -> bool:
    limited = queue.setting("max-length") is not None or queue.setting("max-length-bytes") is not None
    return limited and queue.setting("overflow") not in REFUSES and queue.type != "stream"


def _full(share: float, queue: Queue) -> bool:
    """Whether it is at its limit; unacknowledged messages do not count towards it."""
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    by_length = isinstance(length, int) and (queue.messages_ready or 0) >= share * length
    return by_length or (isinstance(space, int) and (queue.message_bytes_ready or 0) >= share * space)


def _severity(view: View, queue: Queue, seconds: float) -> Severity:
    """Without consumers it may be what keeps the newest few on purpose; where drop-head is written down, too."""
    if not queue.consumers or seconds < view.limits(queue).queues.maxlen_for:
        return Severity.INFO
    return Severity.WARNING if queue.setting("overflow") == "drop-head" else Severity.CRITICAL


def _finding(view: View, queue: Queue, lately: Series[Queue], balance: Balance) -> FindingReport:
    seconds = span(lately)
    severity = _severity(view, queue, seconds)
    if not queue.consumers:
        told = f"seen for {lasting(seconds)}; nobody consumes, so it may keep the newest few on purpose"
    else:
        told = so_far(severity, seconds, view.limits(queue).queues.maxlen_for, "a burst")
    overflow = queue.setting("overflow")
    chosen = "overflow=drop-head" if overflow == "drop-head" else "no overflow set, which means drop-head"
    pace = balance.taken / balance.seconds
    who = f"its consumers take {pace:.1f} messages a second" if queue.consumers else "nobody consumes from it"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=lately[0].at.iso(),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) is full ({_limits(queue)}) and drops its oldest messages: "
            f"at least {balance.lost} in {lasting(seconds)}; publishers get confirms all the same; {told}"
        ),
        cause=(
            f"It has a length limit with {chosen}, {who}, and "
            f"{balance.published / balance.seconds:.1f} a second are published."
        ),
        evidence=(
            EvidenceReport(
                what="ready",
                value=_limits(queue),
                expected="below the limit",
                source="/api/queues messages_ready, arguments, effective_policy_definition",
            ),
            *evidence(balance),
        ),
        next_steps=_steps(queue),
        runbook=runbook(NAME),
    )


def _limits(queue: Queue) -> str:
    told = []
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    if isinstance(length, int):
        told.append(f"{queue.messages_ready or 0} of {amount(length, 'message')}")
    if isinstance(space, int):
        told.append(f"{size(queue.message_bytes_ready or 0)} of {size(space)}")
    return ", ".join(told)


def _steps(queue: Queue) -> tuple[str, ...]:
    limits: dict[str, object] = {
        key: queue.setting(key) for key in ("max-length", "max-length-bytes") if queue.setting(key) is not None
    }
    refusing = set_policy(queue, "refuse", {**limits, "overflow": "reject-publish"})
    keeping = set_policy(queue, "keep-dropped", {**limits, "dead-letter-exchange": "EXCHANGE"})
    return (
        f"see who consumes, and scale or mend them: {list_consumers(queue)}",
        f"to have publishers told (basic.nack) instead of losing: {refusing}",
        f"or keep what is dropped in another queue: {keeping}",
        "if it is meant to keep the newest few only, write that down as overflow=drop-head",
    )
