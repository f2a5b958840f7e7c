"""restart-loss: a queue has fewer messages after a restart of its node than before, and nobody took them.

A classic queue does not recover transient messages (delivery mode 1), although they were confirmed. The counters of the
queue start again with the node, so the ledger is continued across the restart by its lengths.
Source: https://www.rabbitmq.com/docs/persistence-conf; seen on 3.10, 4.0 and 4.3
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Severity, Unit, source
from ackscope.snapshot import Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import SKEW_SECONDS, Levels, levels, may_settle_unseen, settled_after
from diagnosis.rules.nodes._shared.node_history import restarts
from diagnosis.rules.publishers._shared.overflow import level, refuses_when_full
from diagnosis.rules.queues._shared.queue import involved_queue, is_private, queue_subject
from diagnosis.series import count
from diagnosis.window import Series, Timestamped

NAME = "restart-loss"

_READINGS = 2
"""Readings after the restart that must show the same."""
_RECOVERED, _LISTED = 10.0, 40.0
"""Seconds after the start of a node until the lengths of its queues are reported, also by a busy one."""


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
    restarted = {node.name: seen[-1] for node in view.nodes if (seen := restarts(view, node.name))}
    if not restarted:
        return
    for queue in view.queues:
        restart = restarted.get(queue.leader or queue.node or "")
        if restart is None or queue.durable is False or is_private(queue) or may_settle_unseen(view, queue):
            continue
        found = _across(view.readings_of(queue), restart)
        if found is None or found.lost - found.error < view.limits(queue).queues.loss_least:
            continue
        reason = _other_exit(view, queue, found)
        if reason:
            yield Inconclusive(rule=NAME, reason=reason, facts={"queue": queue_facts(queue), "missing": found.lost})
        else:
            yield _finding(queue, view, found)


def _other_exit(view: View, queue: Queue, found: _Restart) -> str | None:
    """Return how messages may have left beside the restart that no counter shows; None if in no way."""
    if queue.setting("message-ttl") is not None:
        return "may_have_expired"
    share = view.limits(queue).queues.full_share
    full = any(level(seen.value) >= share for seen in (found.before, found.after))
    return "may_be_dropped" if full and not refuses_when_full(queue) else None


def _across(readings: Series[Queue], node: Timestamped[Node]) -> _Restart | None:
    """Return the balance across the restart; None if a side of it was not seen twice.

    A length may be older than the counters, above all while a busy node recovers its queues. Then a later reading has
    fewer missing messages, and that one counts: what the restart lost is missing in all of them.
    """
    started = node.at.mono - (node.value.uptime_seconds or 0.0)
    known = [seen for seen in readings if seen.value.messages_ready is not None]
    before = [seen for seen in known if seen.at.mono < started]
    since = [seen for seen in known if seen.at.mono >= started]
    after = [seen for seen in since if seen.at.mono >= started + _RECOVERED]
    if not before or len(after) < _READINGS:
        return None
    # Dead letters that come later are counted nowhere, and would hide what is missing.
    near = [seen for seen in after if seen.at.mono <= started + _LISTED]
    after = near if len(near) >= _READINGS else after[:_READINGS]
    settled = settled_after(tuple(before), max(0.0, started - before[-1].at.mono))
    found = [each for seen in after if (each := _balance(before[-1], seen, since, settled)) is not None]
    return min(found, key=lambda each: each.lost, default=None)


def _balance(
    before: Timestamped[Queue], after: Timestamped[Queue], since: Sequence[Timestamped[Queue]], settled: int
) -> _Restart | None:
    one, other = levels(before.value), levels(after.value)
    if one is None or other is None:
        return None
    base = _base(one, other)
    # What consumers rejected since the start is lost, but not by the restart.
    arrived, left, discarded = _moved(other, base)
    lost = one.ready + one.unacked + arrived - left - discarded - other.ready - other.unacked
    counted = [levels(seen.value) for seen in since if after.at.since(seen.at) >= SKEW_SECONDS]
    earlier = [sum(_moved(each, _base(one, each))) for each in counted if each is not None]
    # What moved in the last seconds may not be in the length yet. A client that comes back can do so just then.
    return _Restart(before, after, lost, settled + max(0, arrived + left + discarded - max(earlier, default=0)))


def _base(one: Levels, other: Levels) -> tuple[int, int, int]:
    """Return the counters from which those of a later reading rose; they may have begun again."""
    fell = other.arrived < one.arrived or other.acked < one.acked
    return (0, 0, 0) if fell else (one.arrived, one.acked + one.auto, one.discarded)


def _moved(levels_now: Levels, base: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return how many messages arrived, were acknowledged and were rejected since."""
    return (
        levels_now.arrived - base[0],
        levels_now.acked + levels_now.auto - base[1],
        max(0, levels_now.discarded - base[2]),
    )


def _finding(queue: Queue, view: View, found: _Restart) -> Finding:
    before, after = found.before.value, found.after.value
    had = (before.messages_ready or 0) + (before.messages_unacked or 0)
    transient = None if before.messages_persistent is None else max(0, had - before.messages_persistent)
    all_transient = transient is not None and transient >= found.lost - found.error
    # Who acknowledges each message needs it, whatever its publisher set.
    acknowledged = count(before.stats, "ack") + count(after.stats, "ack") > 0
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if acknowledged or not all_transient else Severity.WARNING,
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
            "all_transient": all_transient,
            "acknowledged": acknowledged,
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
