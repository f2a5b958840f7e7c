"""no-consumer (B01): messages wait and nobody takes them, neither by consuming nor by polling."""

import re
from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, Subject, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Answer, Harm, Rule, View
from diagnosis.series import delta, last, span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, list_consumers, place, some

TAKEN = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack")
"""Any of these moves when somebody takes messages, or tries to."""


def evaluate(view: View) -> Iterator[Answer]:
    """Judge every queue that has messages ready and no consumer."""
    limits = view.thresholds
    suspects = [queue for queue in view.queues if queue.consumers == 0 and (queue.messages_ready or 0) > 0]
    if not suspects:
        return
    targets = _dead_letter_targets(view)
    for queue in suspects:
        if _on_purpose(queue, targets, limits.benign_queue_patterns):
            continue
        alone = stretch(view.history(queue), _left_alone)
        if len(alone) < 2:
            continue
        lately = last(alone, limits.no_consumer_growing)
        grows = delta(lately, "publish") > 0 or _ready(lately[-1]) > _ready(lately[0])
        if grows and span(alone) >= limits.no_consumer_growing:
            yield _finding(view, queue, alone, lately, Severity.WARNING)
        elif not grows and span(alone) >= limits.no_consumer_quiet:
            yield _finding(view, queue, alone, lately, Severity.INFO)


RULE = Rule(
    name="no-consumer",
    title="messages wait and nobody takes them",
    harm=Harm.STOPS,
    needs=("overview", "queues"),
    counts=True,
    evaluate=evaluate,
)


def _left_alone(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return (
        older.value.consumers == newer.value.consumers == 0
        and _ready(older) > 0
        and _ready(newer) > 0
        and all(delta((older, newer), counter) == 0 for counter in TAKEN)
    )


def _ready(seen: Seen[Queue]) -> int:
    return seen.value.messages_ready or 0


def _dead_letter_targets(view: View) -> set[tuple[str, str]]:
    """Queues to which another queue dead-letters by the default exchange, that is by their own name."""
    found = ((queue, queue.setting("dead-letter-routing-key")) for queue in view.queues)
    return {
        (queue.vhost, key)
        for queue, key in found
        if isinstance(key, str) and key != queue.name and queue.setting("dead-letter-exchange") == ""
    }


def _on_purpose(queue: Queue, targets: set[tuple[str, str]], patterns: tuple[str, ...]) -> bool:
    """Whether this queue is meant to have no consumer: a delay, a dead-letter store, a stream, a private queue."""
    delays = queue.setting("message-ttl") is not None and queue.setting("dead-letter-exchange") is not None
    return (
        delays
        or queue.key in targets
        or queue.type == "stream"
        or queue.exclusive is True
        or any(re.search(pattern, queue.name) for pattern in patterns)
    )


def _finding(view: View, queue: Queue, alone: Series[Queue], lately: Series[Queue], severity: Severity) -> Finding:
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
        Evidence(what="consumers", value="0", expected="at least 1", source=f"{source} consumers"),
        Evidence(what="messages ready", value=f"{waiting}", expected="0", source=f"{source} messages_ready"),
        Evidence(
            what="published",
            value=f"{amount(published, 'message')} in {lasting(span(lately))}",
            source=f"{source} message_stats.publish",
        ),
        Evidence(
            what="taken by polling", value=f"0 in {lasting(seconds)}", source=f"{source} message_stats.get, get_empty"
        ),
    ]
    if idle:
        evidence.append(
            Evidence(
                what="connections without a channel",
                value=some(idle),
                expected="none",
                source="/api/connections channels",
            )
        )
    grows = "and grows" if severity is Severity.WARNING else "and does not grow"
    return Finding(
        rule=RULE.name,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=alone[0].at.iso(),
        summary=(
            f"{amount(waiting, 'message')} in queue {queue.name!r} ({queue.vhost!r}) and nobody takes them: "
            f"no consumer for {lasting(seconds)} or more, {grows}"
        ),
        cause=f"Nothing consumes from the queue: {cause}.",
        evidence=tuple(evidence),
        next_steps=_steps(queue),
        runbook=runbook(RULE.name),
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
