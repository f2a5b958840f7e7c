"""restart-loss: a queue has fewer messages after a restart of its node than before, and nobody took them.

A classic queue does not recover transient messages (delivery mode 1), although they were confirmed. The counters of the
queue start again with the node, so the ledger is continued across the restart by its lengths.
Source: https://www.rabbitmq.com/docs/persistence-conf; seen on 3.10, 4.0 and 4.3
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import SKEW_SECONDS, levels, may_settle_unseen
from diagnosis.purpose import CONSUMED
from diagnosis.rules.nodes._shared.node_history import restarts
from diagnosis.rules.queues._shared.queue import involved_queue, is_private, queue_subject
from diagnosis.series import delta, last, span
from diagnosis.window import Series, Timestamped

NAME = "restart-loss"

_RECOVERED = 10.0
"""Seconds after the start of a node until the lengths of its queues are reported."""


@dataclass(frozen=True, slots=True)
class _Restart:
    """What a queue had before and after a restart of its node.

    Attributes:
        lost: messages that were there before and are not accounted for; at most `error` of them may be none.
    """

    before: Timestamped[Queue]
    after: Timestamped[Queue]
    lost: int
    error: int


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every durable queue on a node that was restarted."""
    restarted = {node.name: found[-1] for node in view.nodes if (found := restarts(view, node.name))}
    if not restarted:
        return
    for queue in view.queues:
        restart = restarted.get(queue.leader or queue.node or "")
        if restart is None or queue.durable is False or is_private(queue) or may_settle_unseen(view, queue):
            continue
        balance = _across(view.readings_of(queue), restart)
        if balance is not None and balance.lost - balance.error >= view.limits(queue).queues.loss_least:
            yield _finding(queue, view, balance)


def _across(readings: Series[Queue], node: Timestamped[Node]) -> _Restart | None:
    """Return the balance across the restart; None if a side of it was not seen."""
    started = node.at.mono - (node.value.uptime_seconds or 0.0)
    known = [seen for seen in readings if seen.value.messages_ready is not None]
    before = [seen for seen in known if seen.at.mono < started]
    after = [seen for seen in known if seen.at.mono >= started + _RECOVERED]
    if not before or not after:
        return None
    one, other = levels(before[-1].value), levels(after[0].value)
    if one is None or other is None:
        return None
    fell = other.arrived < one.arrived or other.acked < one.acked
    base = (0, 0) if fell else (one.arrived, one.acked + one.auto)
    arrived, left = other.arrived - base[0], other.acked + other.auto - base[1]
    lost = one.ready + one.unacked + arrived - left - other.ready - other.unacked
    # Between the last reading and the end of the node, consumers may have acknowledged more.
    recent = last(tuple(before), 2 * SKEW_SECONDS)
    rate = delta(recent, *CONSUMED) / span(recent) if span(recent) else 0.0
    gap = max(0.0, started - before[-1].at.mono) + SKEW_SECONDS
    return _Restart(before[-1], after[0], lost, math.ceil(rate * gap))


def _finding(queue: Queue, view: View, found: _Restart) -> Finding:
    before, after = found.before.value, found.after.value
    had = (before.messages_ready or 0) + (before.messages_unacked or 0)
    transient = None if before.messages_persistent is None else max(0, had - before.messages_persistent)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=found.before.at.iso(),
        accounted=found.lost,
        facts={
            "queue": queue_facts(queue),
            "lost": found.lost,
            "error": found.error,
            "before": had,
            "after": (after.messages_ready or 0) + (after.messages_unacked or 0),
            "transient": transient,
            "all_transient": transient is not None and transient >= found.lost - found.error,
        },
        certainty=Certainty.CERTAIN if transient is not None and transient >= found.lost else Certainty.LIKELY,
        evidence=(
            Evidence(
                key="before", value=had, unit=Unit.MESSAGES, source=source("/api/queues", "messages", "messages_ready")
            ),
            Evidence(
                key="transient",
                value=transient,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_persistent"),
            ),
            Evidence(
                key="lost",
                value=found.lost,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages", "message_stats") + source("/api/nodes", "uptime"),
                facts={"error": found.error},
            ),
        ),
        involved=involved_queue(queue, view.links(queue)),
    )
