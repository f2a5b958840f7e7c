"""dlq-filling (C05): the queue that takes dead letters grows; somewhere messages are given up.

Which queue takes dead letters follows from arguments, policies and bindings, never from a name.
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.kept import kept
from diagnosis.routes import dead_letters_to, is_delay
from diagnosis.rules.queues.balance import all_along, balance
from diagnosis.rules.queues.telling import about, named, so_far
from diagnosis.series import delta, last, span
from diagnosis.window import Series
from diagnosis.words import API, amount, lasting, some

NAME = "dlq-filling"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that others dead-letter into and that is no delay."""
    sources = kept(view, _sources)
    for queue in view.queues:
        if queue.key not in sources or not queue.messages_ready or is_delay(queue) or queue.type == "stream":
            continue
        grew = _growing(view, queue)
        if grew:
            yield _finding(view, queue, grew, sources[queue.key])


def _sources(view: View) -> dict[tuple[str, str], list[Queue]]:
    """Queue -> the queues that dead-letter into it; what comes out of a delay is no dead letter."""
    found: dict[tuple[str, str], list[Queue]] = {}
    for queue in view.queues:
        if queue.setting("dead-letter-exchange") is None or is_delay(queue):
            continue
        for target in sorted(dead_letters_to(view, queue) or ()):
            if target != queue.key:
                found.setdefault(target, []).append(queue)
    return found


def _growing(view: View, queue: Queue) -> Series[Queue]:
    """The time until now in which it grew in each interval, by more than was published to it; empty where it did not.

    It counts what came without being published to it: a queue that is also used directly may grow for other reasons.
    """
    limits = view.limits(queue)
    history = view.history(queue)

    def grows(pair: Series[Queue]) -> bool:
        step = balance(pair)
        return step is not None and _ready(pair[-1].value) > _ready(pair[0].value) and step.missing < 0

    long = last(history, limits.queues.dead_letters_for)
    if span(long) >= limits.queues.dead_letters_for and _came(long) >= limits.queues.dead_letters_least:
        # Slower, but it never went down: of one message a minute nobody takes care either.
        levels = [_ready(seen.value) for seen in long]
        if levels == sorted(levels):
            return long
    lately = all_along(history, limits.interval, grows)
    least = limits.queues.loss_least
    return lately if span(lately) >= limits.early and _came(lately) >= least else ()


def _came(series: Series[Queue]) -> int:
    """Dead letters that came meanwhile: the broker does not count them as published."""
    whole = balance(series)
    return -whole.missing if whole is not None else 0


def _ready(queue: Queue) -> int:
    return queue.messages_ready or 0


def _finding(view: View, queue: Queue, grew: Series[Queue], sources: list[Queue]) -> FindingReport:
    limits = view.limits(queue).queues
    seconds, came = span(grew), _came(grew)
    lasts = seconds >= limits.dead_letters_for and came >= limits.dead_letters_least
    severity = Severity.WARNING if lasts else Severity.INFO
    blamed = [told for source in sources if (told := _why(view, source, seconds)) is not None]
    names = some(repr(source.name) for source in sources)
    cause = "; ".join(blamed[:3]) if blamed else f"one of {names} gives messages up"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=grew[0].at.iso(),
        summary=(
            f"Dead letters pile up in {named(queue)}: {came} more in {lasting(seconds)}, "
            f"{queue.messages_ready} in all; "
            f"{so_far(severity, seconds, limits.dead_letters_for, 'a few poison messages')}"
        ),
        cause=f"Messages are dead-lettered: {cause}.",
        evidence=(
            EvidenceReport(
                what="came by dead-lettering",
                value=f"{amount(came, 'message')} in {lasting(seconds)}",
                expected="0",
                source="/api/queues messages, message_stats (dead letters are not counted as published)",
            ),
            EvidenceReport(what="ready", value=f"{queue.messages_ready}", source="/api/queues messages_ready"),
            EvidenceReport(
                what="queues that dead-letter into it",
                value=names,
                source="/api/queues arguments, effective_policy_definition; /api/bindings",
            ),
        ),
        next_steps=_steps(queue, sources),
        runbook=runbook(NAME),
    )


def _why(view: View, source: Queue, seconds: float) -> str | None:
    """What a queue did lately that makes dead letters; None where it did nothing of the kind."""
    lately = last(view.history(source), max(seconds, view.thresholds.interval))
    whole = balance(lately)
    if whole is None or whole.missing <= 0:
        return None
    length = source.setting("max-length")
    if isinstance(length, int) and (source.messages_ready or 0) >= view.limits(source).queues.full_share * length:
        return f"{named(source)} is at its length limit"
    if whole.given_back >= whole.missing * 0.5:
        if source.type == "quorum" and delta(lately, "redeliver") > 0:
            return f"consumers of {named(source)} reject messages, or return them until the delivery limit"
        return f"consumers of {named(source)} reject about {whole.missing} in {lasting(whole.seconds)}"
    if source.setting("message-ttl") is not None:
        return f"about {whole.lost} expired in {named(source)} in {lasting(whole.seconds)}"
    return (
        f"about {whole.missing} left {named(source)} in {lasting(whole.seconds)} (rejected, or expired by themselves)"
    )


def _steps(queue: Queue, sources: list[Queue]) -> tuple[str, ...]:
    """Peeking sets `redelivered`, and counts as a delivery on a quorum queue."""
    body = '{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}'
    where = f"{API}/api/queues/VHOST/QUEUE/get"
    peek = (
        f"rabbitmq-queues peek --vhost {queue.vhost!r} {queue.name!r} 1"
        if queue.type == "quorum"
        else f"curl -s -u USER -H 'content-type: application/json' -d '{body}' {where}"
    )
    return (
        f"read x-death of one message (queue, reason, count): {peek}",
        f"read the log of the consumers of {some(repr(source.name) for source in sources)} for what they reject",
        "mend the cause first; then move the messages back with a shovel, or delete them",
    )
