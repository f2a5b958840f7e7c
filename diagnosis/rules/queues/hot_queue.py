"""hot-queue (C08): one queue carries most of the traffic, and a queue is one process: it runs on one core.

It is reported only if that limit has an effect: publishers are throttled (flow), or messages are ready although its
consumers could hold more unacknowledged messages.
Source: https://www.rabbitmq.com/docs/queues#runtime-characteristics
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.hold_time import may_hold
from diagnosis.rules.queues._shared.message_balance import latest_run
from diagnosis.rules.queues._shared.queue import certainty, queue_subject
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "hot-queue"

TRAFFIC = ("publish", "deliver_get")
FLOW = "flow"
MIN_READINGS = 3
"""Minimum readings of a channel for its states to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Signs that the queue is the bottleneck.

    Attributes:
        in_flow: whether the queue itself is in flow.
        throttled: clients whose publishes are in flow.
        prefetch: messages that its consumers may hold, if they hold far fewer; else None.
    """

    in_flow: bool
    throttled: tuple[str, ...]
    prefetch: int | None

    def __bool__(self) -> bool:
        return self.in_flow or bool(self.throttled) or self.prefetch is not None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Find the queue with most traffic and judge whether it is at its limit."""
    busy = [queue for queue in view.queues if queue.type != "stream" and view.moved(queue, "publish")]
    if not busy:
        return
    interval = view.thresholds.interval
    traffic = {queue.key: delta(view.recent(queue), *TRAFFIC) for queue in busy}
    total = sum(traffic.values())
    queue = max(busy, key=lambda each: (traffic[each.key], each.key))
    limits = view.limits(queue).queues
    if traffic[queue.key] <= limits.hot_share * total:
        return
    run = _hot_run(view.history(queue), interval, limits.hot_rate)
    if span(run) < view.thresholds.early:
        return
    effects = _effects(view, queue)
    if effects:
        yield _finding(view, queue, run, traffic[queue.key] / max(total, 1), effects)


def _hot_run(history: Series[Queue], interval: float, rate: float) -> Series[Queue]:
    """Return the latest stretch in which the queue had at least this rate in each interval."""
    return latest_run(history, interval, lambda pair: delta(pair, *TRAFFIC) >= rate * span(pair))


def _effects(view: View, queue: Queue) -> Effects:
    allowed, unacked = may_hold(view, queue), queue.messages_unacked
    room = (
        allowed is not None
        and unacked is not None
        and unacked < 0.5 * allowed
        and (queue.messages_ready or 0) > allowed > 0
    )
    return Effects(
        in_flow=queue.state == FLOW,
        throttled=tuple(_throttled(view, queue.vhost)),
        prefetch=allowed if room else None,
    )


def _throttled(view: View, vhost: str) -> list[str]:
    """Return the clients of a virtual host whose publishing channels were in flow in half of the recent readings."""
    found = set()
    for channel in view.channels:
        if channel.vhost != vhost or not channel.stats.publish:
            continue
        states = [seen.value.state == FLOW for seen in view.channel_history(channel.name)]
        if len(states) >= MIN_READINGS and sum(states) * 2 >= len(states):
            name = client_name(view.connection(channel.connection_name), channel.connection_name)
            found.add(name or "unknown connection")
    return sorted(found)


def _finding(view: View, queue: Queue, run: Series[Queue], share: float, effects: Effects) -> Finding:
    limits, seconds = view.limits(queue).queues, span(run)
    severity = Severity.WARNING if seconds >= limits.hot_for else Severity.INFO
    rate = delta(run, *TRAFFIC) / seconds
    node = queue.leader or queue.node
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "traffic_rate": rate,
            "traffic_share": share,
            "in_flow": effects.in_flow,
            "throttled": list(effects.throttled),
            "prefetch": effects.prefetch,
            "ready": queue.messages_ready,
            "unacked": queue.messages_unacked,
            "warning_after_seconds": limits.hot_for,
        },
        certainty=certainty(severity, seconds, limits.hot_for),
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="traffic",
                value=rate,
                unit=Unit.PER_SECOND,
                source=source("/api/queues", "message_stats.publish", "message_stats.deliver_get"),
            ),
            *_effect_evidence(effects),
        ),
        involved=Involved(
            queues=(queue_ref(queue),), clients=effects.throttled, nodes=(node,) if node is not None else ()
        ),
    )


def _effect_evidence(effects: Effects) -> Iterator[Evidence]:
    if effects.in_flow:
        yield Evidence(key="queue_state", value=FLOW, source=source("/api/queues", "state"))
    if effects.throttled:
        yield Evidence(key="publisher_state", source=source("/api/channels", "state"))
    if effects.prefetch is not None:
        fields = source("/api/queues", "messages_ready", "messages_unacknowledged")
        yield Evidence(key="unacked", source=fields + source("/api/consumers", "prefetch_count"))
