"""requeue-loop (B06): a consumer gives messages back, gets them again, and acknowledges next to nothing.

A consumer that comes back after a restart also causes redeliveries, once; so the share must hold in several
intervals in a row.
"""

import re
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Link, RuleResult, View
from diagnosis.rules.consumers.coming_again import coming_again
from diagnosis.rules.consumers.rounds import REFRESH, delivered, rounds
from diagnosis.series import delta, span
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, list_consumers, some, whose

NAME = "requeue-loop"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that redelivered lately."""
    for queue in view.queues:
        if not queue.stats.redeliver or not view.moved(queue, "redeliver"):
            continue
        limits = view.limits(queue)
        history = view.history(queue)
        loops = rounds(view, history, limits.interval)
        if len(loops) > limits.consumers.requeue_intervals and span(loops) >= limits.consumers.requeue_for:
            yield _finding(view, queue, loops)
            continue
        # Sooner only where no reading is without it: what a consumer that came back gets again comes at once.
        early = rounds(view, history, REFRESH)
        if span(early) >= limits.early:
            yield _finding(view, queue, early, early=True)
        else:
            yield from coming_again(view, queue)


def _finding(view: View, queue: Queue, loops: Series[Queue], *, early: bool = False) -> FindingReport:
    seconds = span(loops)
    redelivered, acked = delta(loops, "redeliver"), delta(loops, "ack")
    gained = delivered(loops[-1].value) - delivered(loops[0].value)
    culprits = _culprits(view, queue)
    names = sorted({client(link.connection, link.consumer.connection_name) for link, _ in culprits})
    by = f" by {some(repr(name) for name in names)}" if names else ""
    ready = queue.messages_ready or 0
    stopped = acked == 0 and delta(loops[-2:], "publish") > 0
    severity = Severity.CRITICAL if stopped else Severity.WARNING
    evidence = [
        EvidenceReport(
            what="redelivered",
            value=f"{redelivered} of {gained} deliveries, {redelivered / seconds:.0f} a second",
            expected="near 0",
            source="/api/queues message_stats.redeliver, deliver_get",
        ),
        EvidenceReport(
            what="acknowledged",
            value=f"{acked} in {lasting(seconds)}",
            expected="about as many as delivered",
            source="/api/queues message_stats.ack",
        ),
        EvidenceReport(
            what="messages in the queue",
            value=f"{ready} ready, {queue.messages_unacked or 0} unacknowledged",
            source="/api/queues messages_ready, messages_unacknowledged",
        ),
    ]
    evidence += [
        EvidenceReport(
            what=whose(link),
            value=f"got {amount(times, 'message')} again",
            expected="0",
            source="/api/consumers, /api/channels message_stats.redeliver",
        )
        for link, times in culprits[:3]
    ]
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO if early else severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=loops[0].at.iso(),
        summary=(
            f"Messages go round in queue {queue.name!r} ({queue.vhost!r}): given back{by} and delivered again "
            f"{redelivered / seconds:.0f} times a second, {acked} acknowledged, seen over {lasting(seconds)}"
        ),
        cause=(
            "A consumer rejects with requeue (basic.nack or basic.reject, or a framework that does it on an "
            f"exception) a message that it cannot process, and gets it again at once. {_limit_note(view, queue)}"
        ),
        evidence=tuple(evidence),
        next_steps=_steps(queue),
        runbook=runbook(NAME),
    )


def _culprits(view: View, queue: Queue) -> list[tuple[Link, int]]:
    """Consumers whose channel got redeliveries within the window, most first."""
    found = [
        (link, delta(view.channel_history(link.channel.name), "redeliver"))
        for link in view.links(queue)
        if link.channel is not None
    ]
    guilty = [(link, times) for link, times in found if times > 0]
    return sorted(guilty, key=lambda item: (-item[1], item[0].consumer.channel_name or "", item[0].consumer.tag))


def _limit_note(view: View, queue: Queue) -> str:
    """What this version does with a message that comes back again and again.

    Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling; seen on 3.10.8, 4.0.5 and 4.3.6.
    """
    version = view.version
    if queue.type == "classic":
        return "A classic queue knows no limit: this goes on until the consumer changes."
    if queue.type != "quorum" or version is None:
        return "Whether a delivery limit ends this depends on queue type and version."
    if version < (4, 0):
        return "A quorum queue of this version has no delivery limit unless one is set, and its log grows on disk."
    if version < (4, 3):
        return (
            "A quorum queue of this version drops a message after 20 returns, or dead-letters it where a dead-letter "
            "exchange is set: without one these messages are being lost."
        )
    return (
        "In a quorum queue of this version basic.nack does not count towards the delivery limit (basic.reject does): "
        "this goes on, and the queue's log grows on disk."
    )


def _steps(queue: Queue) -> tuple[str, ...]:
    limit = ""
    if queue.type == "quorum":
        definition = quote('{"delivery-limit":5,"dead-letter-exchange":"DLX"}')
        pattern = quote(f"^{re.escape(queue.name)}$")
        limit = (
            f"put an end to it: rabbitmqctl set_policy -p {quote(queue.vhost)} requeue-limit {pattern} {definition} "
            "--apply-to queues --priority 10   # it replaces the policy in force: merge the two; declare DLX first"
        )
    steps_ = (
        f"find the application: {list_consumers(queue)}",
        "read its log for the exception; stop it if the loop eats the machine (its messages stay in the queue)",
        limit,
        "mend the handler: reject without requeue what it cannot process, so that it is dead-lettered",
    )
    return tuple(step for step in steps_ if step)
