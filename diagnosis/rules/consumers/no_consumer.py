"""no-consumer (B01): messages wait and nobody takes them, neither by consuming nor by polling."""

import re
from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.routes import dead_letter_targets
from diagnosis.series import delta, last, span, stretch
from diagnosis.usual_text import lines
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, list_consumers, place, some

NAME = "no-consumer"

TAKEN = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack")
"""Any of these moves when somebody takes messages, or tries to."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that has messages ready and no consumer."""
    for queue in view.queues:
        if queue.consumers != 0 or not queue.messages_ready:
            continue
        alone = stretch(view.history(queue), _left_alone)
        severity = _severity(view, queue, alone)
        if severity is None:
            continue
        reason = _on_purpose(view, queue)
        if reason:
            yield SuppressedReport(rule=NAME, subject=_subject(queue), because=reason)
        else:
            yield _finding(view, queue, alone, severity)


def _severity(view: View, queue: Queue, alone: Series[Queue]) -> Severity | None:
    """How bad it is by now; None where it is too early to tell anything."""
    limits = view.limits(queue)
    if len(alone) < 2:
        return None
    if _grows(last(alone, limits.consumers.no_consumer_growing)):
        if span(alone) >= limits.consumers.no_consumer_growing:
            return Severity.WARNING
        return Severity.INFO if span(alone) >= limits.early else None
    return Severity.INFO if span(alone) >= limits.consumers.no_consumer_quiet else None


def _grows(alone: Series[Queue]) -> bool:
    return delta(alone, "publish") > 0 or _ready(alone[-1]) > _ready(alone[0])


def _subject(queue: Queue) -> Subject:
    return Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node)


def _left_alone(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return (
        older.value.consumers == newer.value.consumers == 0
        and _ready(older) > 0
        and _ready(newer) > 0
        and all(delta((older, newer), counter) == 0 for counter in TAKEN)
    )


def _ready(seen: Seen[Queue]) -> int:
    return seen.value.messages_ready or 0


def _on_purpose(view: View, queue: Queue) -> str | None:
    """Why this queue is meant to have no consumer: a delay, a dead-letter store, a stream, a private queue."""
    if queue.setting("message-ttl") is not None and queue.setting("dead-letter-exchange") is not None:
        return "it is a delay: its messages expire (message TTL) into another exchange, and nobody should take them"
    if queue.key in dead_letter_targets(view):
        return "it is a dead-letter store: another queue dead-letters into it"
    if queue.type == "stream":
        return "it is a stream: it keeps its messages whether somebody reads them or not"
    if queue.exclusive is True:
        return "it is exclusive: it belongs to one connection, and goes with it"
    patterns = view.thresholds.benign_queue_patterns
    pattern = next((each for each in patterns if re.search(each, queue.name)), None)
    return f"its name says that it has no consumer on purpose (it matches {pattern})" if pattern else None


def _finding(view: View, queue: Queue, alone: Series[Queue], severity: Severity) -> FindingReport:
    lately = last(alone, view.limits(queue).consumers.no_consumer_growing)
    waiting, published, seconds = _ready(alone[-1]), delta(lately, "publish"), span(alone)
    whole = view.history(queue)
    left = len(alone) < len(whole) and bool(whole[-len(alone) - 1].value.consumers)
    cause = "its last consumer left" if left else "no consumer was seen since it is watched"
    idle = sorted(
        connection.client_name or connection.name
        for connection in view.connections
        if connection.vhost == queue.vhost and connection.channels == 0
    )
    if idle:
        cause += (
            f"; {amount(len(idle), 'connection')} of this vhost without a channel: perhaps that consumer, "
            "whose channel the broker closed"
        )
    source = "/api/queues"
    evidence = [
        EvidenceReport(what="consumers", value="0", expected="at least 1", source=f"{source} consumers"),
        EvidenceReport(what="messages ready", value=f"{waiting}", expected="0", source=f"{source} messages_ready"),
        EvidenceReport(
            what="published",
            value=f"{amount(published, 'message')} in {lasting(span(lately))}",
            source=f"{source} message_stats.publish",
        ),
        EvidenceReport(
            what="taken by polling", value=f"0 in {lasting(seconds)}", source=f"{source} message_stats.get, get_empty"
        ),
    ]
    evidence += lines(view, queue, "consumers", "ready")
    if idle:
        evidence.append(
            EvidenceReport(
                what="connections without a channel",
                value=some(idle),
                expected="none",
                source="/api/connections channels",
            )
        )
    grows = "and grows" if _grows(lately) else "and does not grow"
    if severity is Severity.INFO and _grows(lately):
        warns = lasting(view.limits(queue).consumers.no_consumer_growing)
        grows += f"; a deployment looks the same, a warning comes after {warns}"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=_subject(queue),
        since=alone[0].at.iso(),
        summary=(
            f"{amount(waiting, 'message')} in queue {queue.name!r} ({queue.vhost!r}) and nobody takes them: "
            f"no consumer for {lasting(seconds)} or more, {grows}"
        ),
        cause=f"Nothing consumes from the queue: {cause}.",
        evidence=tuple(evidence),
        next_steps=_steps(queue),
        runbook=runbook(NAME),
    )


def _steps(queue: Queue) -> tuple[str, ...]:
    columns = "user peer_host peer_port channels client_properties"
    return (
        "start or scale the application that consumes from it; read its log for a closed channel (404, 406)",
        f"see whether it consumes now: {list_consumers(queue)}",
        f"see who is connected without a channel: rabbitmqctl list_connections {columns}",
        f"if nobody needs the messages (they are gone then): rabbitmqctl purge_queue {place(queue)}",
        "later: remove the binding that fills it, or give it a message TTL by policy",
    )
