"""qq-segment-growth (C14): a quorum queue keeps on disk what passed through it, for one old message is still held.

The log of a quorum queue can only be cut off before its oldest message. A consumer that holds one while others work
pins all that came after it, although the queue is small by every count. How much that is follows from what passed.
Seen on 4.0.5: of 1031 MiB that passed, 1056 MB were on disk with one message held, and 65 MB without. Not so on 4.3.6,
whose log gives back what lies between: it is not judged.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import Link, RuleResult, View
from diagnosis.rules.queues.telling import about, named
from diagnosis.series import delta, span, stretch
from diagnosis.window import Seen
from diagnosis.words import lasting, size, some, whose

NAME = "qq-segment-growth"

COMPACTS = (4, 3)
"""From this version on an old message pins no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A quorum queue whose log cannot be cut.

    Attributes:
        holders: consumers that hold messages and acknowledge none.
        held: seconds since the first of them does, at least.
        passed: bytes that came to the queue meanwhile and were acknowledged, about.
    """

    queue: Queue
    holders: tuple[Link, ...]
    held: float
    passed: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue with consumers through which messages pass."""
    if view.version is None or view.version >= COMPACTS:
        return
    for queue in view.queues:
        if queue.type != "quorum" or (queue.consumers or 0) < 2 or not queue.messages_unacked:
            continue
        if not queue.message_bytes or not view.moved(queue, "ack"):
            continue
        pinned = _pinned(view, queue)
        if pinned is not None and pinned.passed >= view.limits(queue).queues.segment_pinned:
            yield _finding(view, pinned)


def _pinned(view: View, queue: Queue) -> Pinned | None:
    holders = []
    held = 0.0
    for link in view.links(queue):
        channel = link.channel
        if channel is None or channel.consumer_count != 1 or not channel.messages_unacked:
            continue
        seconds = _still(view, channel)
        if seconds >= view.thresholds.early:
            holders.append(link)
            held = max(held, seconds)
    if not holders:
        return None
    history = view.history(queue)
    lately = tuple(seen for seen in history if view.now.since(seen.at) <= held + view.thresholds.interval)
    watched = span(lately)
    if watched <= 0:
        return None
    # What came before it was watched is taken to have come as fast.
    passed = delta(lately, "ack") / watched * held
    each = (queue.message_bytes or 0) / (queue.messages or 1)
    return Pinned(queue=queue, holders=tuple(holders), held=held, passed=passed * each)


def _still(view: View, channel: Channel) -> float:
    """Seconds that a channel holds messages and does nothing, by our own readings or the broker's clock."""
    seen = span(stretch(view.channel_history(channel.name), _motionless))
    if seen <= 0:
        return 0.0
    return max(seen, view.now.wall - channel.idle_since) if channel.idle_since is not None else seen


def _motionless(older: Seen[Channel], newer: Seen[Channel]) -> bool:
    held = older.value.messages_unacked == newer.value.messages_unacked and bool(newer.value.messages_unacked)
    return held and delta((older, newer), "ack", "deliver", "redeliver") == 0


def _finding(view: View, pinned: Pinned) -> FindingReport:
    queue = pinned.queue
    limits = view.limits(queue).queues
    node = view.node(queue.leader or queue.node)
    free = node.disk_free if node is not None else None
    bad = pinned.passed >= limits.segment_much or (free is not None and pinned.passed >= 0.5 * free)
    members = len(queue.members or ())
    each = f"each of its {members} nodes" if members > 1 else "its node"
    evidence = [
        EvidenceReport(
            what="acknowledged meanwhile, about",
            value=f"{size(pinned.passed)} in {lasting(pinned.held)}",
            source="/api/queues message_stats.ack, message_bytes, messages",
        ),
        EvidenceReport(
            what="held by the queue, by its own count",
            value=f"{queue.messages} messages, {size(queue.message_bytes or 0)}",
            source="/api/queues messages, message_bytes",
        ),
        *(
            EvidenceReport(
                what=whose(link),
                value=f"holds {link.channel.messages_unacked if link.channel else 0}, acknowledged none meanwhile",
                expected="acknowledges",
                source="/api/channels messages_unacknowledged, message_stats.ack, idle_since",
            )
            for link in pinned.holders[:3]
        ),
    ]
    if free is not None:
        evidence.append(
            EvidenceReport(
                what=f"free on {queue.leader or queue.node}", value=size(free), source="/api/nodes disk_free"
            )
        )
    where = f"--vhost {quote(queue.vhost)} {quote(queue.name)}"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if bad else Severity.INFO,
        subject=about(queue),
        since=None,
        summary=(
            f"About {size(pinned.passed)} cannot be freed on the disk of {each} for {named(queue)}: one old message is "
            f"held for {lasting(pinned.held)} while others pass"
        ),
        cause=(
            "The log of a quorum queue is kept from its oldest message on, and "
            f"{some(whose(link) for link in pinned.holders)} holds that one without acknowledging."
        ),
        evidence=tuple(evidence),
        next_steps=(
            "restart that consumer: its message comes again, first in line, and the log can be cut",
            f"see how long its log is (snapshot index, last log index): rabbitmq-queues quorum_status {where}",
            "if nobody acknowledges it in the end: move it away, or let a delivery limit do so",
            "later: 4.3, whose quorum queues free what lies between; a time limit in the handler",
        ),
        runbook=runbook(NAME),
    )
