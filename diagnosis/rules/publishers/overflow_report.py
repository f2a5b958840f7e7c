"""How a full queue is told: how full, why, who is refused, and what to do first."""

import json
import re
from dataclasses import dataclass
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.series import delta, span
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, list_consumers, place, size, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A channel that was refused, somewhere in its virtual host, at least `nacked` times lately."""

    channel: Channel
    connection: Connection | None
    nacked: int

    @property
    def vhost(self) -> str | None:
        """The virtual host that it publishes to."""
        return self.channel.vhost


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A queue at its limit.

    Attributes:
        lately: the readings that it is judged by.
        whole: all readings of it.
        refused: messages refused meanwhile; None where it cannot be told.
        suspects: channels that were nacked.
        silent: channels that publish without confirms in its virtual host.
        acked: acknowledged meanwhile.
    """

    queue: Queue
    lately: Series[Queue]
    whole: Series[Queue]
    refused: int | None
    suspects: tuple[Suspect, ...]
    silent: tuple[Channel, ...]
    acked: int


def report(rule: str, severity: Severity, full: Full) -> FindingReport:
    """The finding for one queue."""
    queue, seconds = full.queue, span(full.lately)
    name = f"Queue {queue.name!r} ({queue.vhost!r}) is full ({_limits(queue)})"
    if severity is Severity.CRITICAL:
        number = amount(full.refused, "message") if full.refused else "messages"
        whom = _whom(full)
        summary = f"{name} and refuses what is published: {number} in {lasting(seconds)}{whom}"
    elif severity is Severity.WARNING:
        summary = (
            f"{name}; {amount(len(full.silent), 'channel')} of its vhost publish without confirms, and would not notice"
        )
    else:
        summary = f"{name}; no refusal was seen in {lasting(seconds)}, but the next publish will be refused"
    return FindingReport(
        rule=rule,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=_since(full),
        summary=summary,
        cause=_cause(full),
        evidence=_evidence(full),
        next_steps=_steps(queue),
        runbook=runbook(rule),
    )


def _whom(full: Full) -> str:
    names = sorted({client(suspect.connection, suspect.channel.connection_name) for suspect in full.suspects})
    if names:
        return f"; nacked: {some(repr(name) for name in names)}"
    if full.silent:
        return "; no nack was seen: what is refused is lost without a word"
    return ""


def _limits(queue: Queue) -> str:
    ready, ready_bytes = queue.messages_ready or 0, queue.message_bytes_ready or 0
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    told = []
    if isinstance(length, int):
        told.append(f"{ready} of {amount(length, 'message')}")
    if isinstance(space, int):
        told.append(f"{size(ready_bytes)} of {size(space)}")
    return ", ".join(told)


def _since(full: Full) -> str:
    """The first of the latest readings that stayed near the limit; a queue that drains by half starts anew."""
    first = full.lately[0]
    for seen in reversed(full.whole):
        if (seen.value.messages_ready or 0) * 2 < (full.queue.messages_ready or 0):
            break
        first = seen
    return first.at.iso()


def _cause(full: Full) -> str:
    queue = full.queue
    overflow = queue.setting("overflow")
    fate = "dead-letters what it refuses" if overflow == "reject-publish-dlx" else "drops what it refuses"
    if not queue.consumers:
        why = "Nobody consumes from it."
    elif full.acked == 0:
        why = f"Nothing is acknowledged by its {amount(queue.consumers, 'consumer')}: see whether they are stuck."
    else:
        pace = full.acked / max(span(full.lately), 1.0)
        why = f"Its consumers acknowledge {pace:.1f} a second, less than is published."
    return (
        f"{why} With overflow={overflow} the queue {fate}: a publisher with confirms gets basic.nack, "
        "one without learns nothing."
    )


def _evidence(full: Full) -> tuple[EvidenceReport, ...]:
    queue, seconds = full.queue, lasting(span(full.lately))
    items = [
        EvidenceReport(
            what="ready",
            value=_limits(queue),
            expected="below the limit",
            source="/api/queues messages_ready, message_bytes_ready, arguments, effective_policy_definition",
        ),
        EvidenceReport(
            what="published to it",
            value=f"{amount(delta(full.lately, 'publish'), 'message')} in {seconds}",
            source="/api/queues message_stats.publish",
        ),
    ]
    if full.refused is not None:
        items.append(
            EvidenceReport(
                what="refused",
                value=f"{amount(full.refused, 'message')} in {seconds}: published, neither stored nor taken",
                expected="0",
                source="/api/queues message_stats.publish, ack, messages",
            )
        )
    items += [
        EvidenceReport(
            what=f"publisher {client(suspect.connection, suspect.channel.connection_name)!r}, "
            f"channel {suspect.channel.name!r}",
            value=f"at least {suspect.nacked} nacked in {seconds} (by this queue or another one)",
            expected="0",
            source="/api/channels message_stats.publish, confirm, messages_unconfirmed",
        )
        for suspect in full.suspects[:3]
    ]
    if full.silent:
        items.append(
            EvidenceReport(
                what="publish without confirms in this vhost",
                value=some(repr(channel.name) for channel in full.silent),
                source="/api/channels confirm, message_stats.publish",
            )
        )
    return tuple(items)


def _steps(queue: Queue) -> tuple[str, ...]:
    return (
        f"see who consumes, and scale or mend them: {list_consumers(queue)}",
        _raise_limit(queue),
        f"if the messages are disposable (they are gone then): rabbitmqctl purge_queue {place(queue)}",
        "see that publishers use confirms, and publish again what was nacked",
    )


def _raise_limit(queue: Queue) -> str:
    limits = {key: queue.setting(key) for key in ("max-length", "max-length-bytes")}
    if any(f"x-{key}" in queue.arguments for key in limits):
        return (
            "to raise its limit, declare it anew: the limit is an argument, and the lower of argument and policy counts"
        )
    wanted = {key: value * 2 for key, value in limits.items() if isinstance(value, int)}
    definition = quote(json.dumps(wanted | {"overflow": queue.setting("overflow")}))
    pattern = quote(f"^{re.escape(queue.name)}$")
    policy = f"rabbitmqctl set_policy -p {quote(queue.vhost)} more-room {pattern} {definition}"
    return f"to win time: {policy} --apply-to queues --priority 10 (it replaces policy {queue.policy!r}: merge the two)"
