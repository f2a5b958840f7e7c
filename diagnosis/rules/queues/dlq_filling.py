"""dlq-filling (C05): the queue that takes dead letters grows; messages fail somewhere.

Arguments, policies and bindings show which queue takes dead letters; names are not used.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.routes import Place, dead_letters_to, is_delay
from diagnosis.rules.consumers._shared.consumer_balances import never_acknowledging
from diagnosis.rules.consumers._shared.discarded import expired_returns, time_to_live
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.queues._shared.message_balance import balance, latest_run
from diagnosis.rules.queues._shared.queue import MAX_NAMED, certainty, involved_queue, queue_refs, queue_subject
from diagnosis.series import delta, last, span
from diagnosis.window import Series

NAME = "dlq-filling"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that others dead-letter into and that is not a delay queue."""
    sources = per_view(view, dead_letter_sources)
    for queue in view.queues:
        if queue.key not in sources or not queue.messages_ready or is_delay(view, queue) or queue.type == "stream":
            continue
        run = _growing_run(view, queue)
        if run:
            yield _finding(view, queue, run, sources[queue.key])


def dead_letter_sources(view: View) -> dict[Place, list[Queue]]:
    """Return by queue the queues that dead-letter into it; messages that leave a delay queue are no dead letters."""
    found: dict[Place, list[Queue]] = {}
    for queue in view.queues:
        if queue.setting("dead-letter-exchange") is None or is_delay(view, queue):
            continue
        for target in sorted(dead_letters_to(view, queue) or ()):
            if target != queue.key:
                found.setdefault(target, []).append(queue)
    return found


def _growing_run(view: View, queue: Queue) -> Series[Queue]:
    """Return the latest stretch in which each interval grew the queue by more than was published to it; else empty.

    Only messages that arrived without a publish count, because a queue that is also used directly may grow for other
    reasons.
    """
    limits = view.limits(queue)
    history = view.history(queue)

    def grows(pair: Series[Queue]) -> bool:
        step = balance(pair)
        return step is not None and _ready(pair[-1].value) > _ready(pair[0].value) and step.missing < 0

    long = last(history, limits.queues.dead_letters_for)
    if span(long) >= limits.queues.dead_letters_for and _arrived(long) >= limits.queues.dead_letters_least:
        # Slower growth also counts if the queue never shrank: nobody handles even one message per minute.
        levels = [_ready(seen.value) for seen in long]
        if levels == sorted(levels):
            return long
    run = latest_run(history, limits.interval, grows)
    minimum = limits.queues.loss_least
    return run if span(run) >= limits.early and _arrived(run) >= minimum else ()


def _arrived(series: Series[Queue]) -> int:
    """Return the dead letters that arrived over a series; the broker does not count them as published."""
    whole = balance(series)
    return -whole.missing if whole is not None else 0


def _ready(queue: Queue) -> int:
    return queue.messages_ready or 0


def _finding(view: View, queue: Queue, run: Series[Queue], sources: list[Queue]) -> Finding:
    limits = view.limits(queue).queues
    seconds, arrived = span(run), _arrived(run)
    long_and_many = seconds >= limits.dead_letters_for and arrived >= limits.dead_letters_least
    severity = Severity.WARNING if long_and_many else Severity.INFO
    reasons = [reason for each in sources if (reason := _reason(view, each, seconds)) is not None]
    rejecting = [link for each in sources for link in never_acknowledging(view, each)]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "arrived": arrived,
            "over_seconds": seconds,
            "ready": queue.messages_ready,
            "source_count": len(sources),
            "sources": [each.name for each in sources[:MAX_NAMED]],
            "reasons": reasons[:3],
            "rejecting": client_names(rejecting),
            "rejected": not reasons or any(str(each["reason"]).startswith("rejected") for each in reasons),
            "warning_after_seconds": limits.dead_letters_for,
        },
        certainty=certainty(severity, seconds, limits.dead_letters_for),
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="arrived",
                value=arrived,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages", "message_stats"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
            Evidence(
                key="sources",
                source=source("/api/queues", "arguments", "effective_policy_definition") + source("/api/bindings"),
            ),
        ),
        involved=involved_queue(queue, rejecting, queue_refs(sources)),
    )


def _reason(view: View, origin: Queue, seconds: float) -> dict[str, Fact] | None:
    """Return why a queue dead-letters: `{"reason", "queue", "messages", "seconds"}`; None if it did not."""
    recent = last(view.history(origin), max(seconds, view.thresholds.interval))
    whole = balance(recent)
    if whole is None or whole.missing <= 0:
        return None
    length = origin.setting("max-length")
    messages = whole.missing
    if isinstance(length, int) and (origin.messages_ready or 0) >= view.limits(origin).queues.full_share * length:
        reason = "length_limit"
    elif whole.rejected >= whole.missing * 0.5:
        limited = origin.type == "quorum" and delta(recent, "redeliver") > 0
        reason = "rejected_or_delivery_limit" if limited else "rejected"
        ttl = time_to_live(origin)
        returned = expired_returns(view, origin, recent, whole.rejected) if ttl is not None else None
        if returned is not None:
            reason = "returned" if returned.only else "rejected_or_returned"
    elif origin.setting("message-ttl") is not None:
        reason, messages = "expired", whole.lost
    else:
        reason = "rejected_or_expired"
    return {"reason": reason, "queue": queue_facts(origin), "messages": messages, "seconds": whole.seconds}
