"""delay-queue-blocked: a message with a long TTL at the head of a delay queue holds back those with shorter ones.

A queue lets messages expire at its head only. The API does not show the TTL of a message, so the evidence is the flow:
messages left after a short wait, and now the oldest one waits far longer while others are published behind it. In a
queue where all messages wait equally long, that cannot happen.
Source: https://www.rabbitmq.com/docs/ttl#per-message-ttl-caveats
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, QueueRef, Severity, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.purpose import dead_letters_received, left_unconsumed
from diagnosis.routes import dead_letters_to, is_delay
from diagnosis.rules.queues._shared.message_balance import MessageBalance, balance
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject, queue_with_policy
from diagnosis.rules.queues._shared.waits import WaitFlow, skew
from diagnosis.series import delta, piled_up_seconds, span
from diagnosis.window import Series

NAME = "delay-queue-blocked"

_IDLE_SLACK = 15.0
"""Seconds by which the idle time of a channel may differ from the time in which the messages piled up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocked:
    """What holds a delay queue up.

    Attributes:
        run: readings in which nothing left; empty if messages leave at present.
        waited: minimum seconds that an oldest message waited.
        usual: maximum seconds that another message waited before it left; None if none was seen to leave.
        gone: messages that left since the counters began, at least.
        targets: the queues behind it whose statistics are known.
        idle: seconds since the consumers behind it last had anything to do; None if unknown or if they are busy.
    """

    run: Series[Queue]
    waited: float
    usual: float | None
    gone: int
    targets: tuple[Queue, ...]
    idle: float | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every delay queue with messages that publishers feed."""
    for queue in view.queues:
        if not queue.messages_ready or not queue.stats.publish or not is_delay(view, queue):
            continue
        flow, limits = WaitFlow.of(view, queue), view.limits(queue).queues
        start = flow.standstill()
        stopped = flow.at[-1] - flow.at[start]
        flows_in = flow.flows_in(start)
        waited = max(stopped if flows_in else 0.0, flow.longest_wait(limits.delay_blocked_for) or 0.0)
        unseen = flows_in and stopped >= limits.delay_blocked_unseen_for
        if (waited < limits.delay_blocked_for and not unseen) or not flow.fed_by_publishes():
            continue
        run = view.history(queue)[start:] if stopped >= view.thresholds.interval else ()
        block = _blocked(view, queue, run, waited, flow.shortest_wait())
        if block.usual is None:
            if unseen and block.gone >= limits.loss_least:
                yield from _unseen(view, queue, block)
        elif waited >= max(limits.delay_blocked_for, limits.delay_blocked_factor * block.usual):
            yield _finding(view, queue, block)


def _blocked(view: View, queue: Queue, run: Series[Queue], waited: float, usual: float | None) -> _Blocked:
    places = sorted(dead_letters_to(view, queue) or ())
    targets = tuple(each for place in places if (each := view.queue(*place)) is not None and each.key != queue.key)
    return _Blocked(
        run=run,
        waited=waited,
        usual=usual,
        gone=max((left_unconsumed(view, queue), *map(dead_letters_received, targets))),
        targets=targets,
        idle=_idle(view, targets),
    )


def _unseen(view: View, queue: Queue, block: _Blocked) -> Iterator[RuleResult]:
    """Judge a queue that messages left before the window began."""
    piled = piled_up_seconds(block.run)
    if piled < view.limits(queue).queues.delay_blocked_for:
        return
    ttl = queue.setting("message-ttl")
    # If all messages waited equally long, the last one left long before or after the present ones began to arrive.
    fits = block.idle is not None and piled / 1.5 - _IDLE_SLACK <= block.idle <= 1.5 * piled + _IDLE_SLACK
    if fits or (block.idle is None and ttl is None):
        yield _finding(view, queue, block)
    else:
        facts = {"for_seconds": span(block.run), "ttl_seconds": ttl / 1000 if isinstance(ttl, int) else None}
        yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="may_not_be_due", facts=facts)


def _idle(view: View, targets: tuple[Queue, ...]) -> float | None:
    channels = [link.channel for target in targets for link in view.links(target)]
    since = [None if channel is None else channel.idle_since for channel in channels]
    if not since or None in since:
        return None
    return max(0.0, view.now.wall - max(each for each in since if each is not None))


def _since(view: View, block: _Blocked) -> Instant:
    begun = block.run[0].at if block.run else view.now
    seconds = max(view.now.since(begun), block.waited)
    if block.usual is None and block.idle is not None:
        seconds = max(seconds, block.idle)
    return Instant(wall=view.now.wall - seconds, mono=view.now.mono - seconds)


def _delay_arguments(queue: Queue) -> dict[str, Fact]:
    """Return the arguments of a queue that dead-letters to the same place."""
    names = ("dead-letter-exchange", "dead-letter-routing-key")
    known = {f"x-{name}": queue.setting(name) for name in names if queue.setting(name) is not None}
    return {"x-queue-type": queue.type or "classic", **known}


def _finding(view: View, queue: Queue, block: _Blocked) -> Finding:
    run = block.run or view.history(queue)
    arrived = sum(max(0, -found.missing) for each in block.targets if (found := _flow(view, each, run)) is not None)
    ttl = queue.setting("message-ttl")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=_since(view, block).iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "ready": queue.messages_ready or 0,
            "published": delta(run, "publish"),
            "over_seconds": span(run),
            "stopped": bool(block.run),
            "waited_seconds": block.waited,
            "usual_seconds": block.usual,
            "left_before": block.gone,
            "targets": [each.name for each in block.targets],
            "target_arrived": arrived,
            "target_starves": bool(block.run) and bool(block.targets) and arrived <= skew(view, queue, run),
            "target_idle_seconds": block.idle,
            "ttl_seconds": ttl / 1000 if isinstance(ttl, int) else None,
            "dead_letter_arguments": _delay_arguments(queue),
        },
        certainty=Certainty.LIKELY,
        seen_seconds=span(run),
        evidence=tuple(_evidence(queue, block, run, arrived)),
        involved=involved_queue(queue, others=[QueueRef(each.vhost, each.name) for each in block.targets]),
    )


def _flow(view: View, target: Queue, run: Series[Queue]) -> MessageBalance | None:
    return balance(tuple(seen for seen in view.history(target) if seen.at.mono >= run[0].at.mono))


def _evidence(queue: Queue, block: _Blocked, run: Series[Queue], arrived: int) -> Iterator[Evidence]:
    counters = source("/api/queues", "message_stats.publish", "messages_ready")
    yield Evidence(key="waited", value=block.waited, unit=Unit.SECONDS, source=counters)
    if block.usual is not None:
        yield Evidence(key="usual", value=block.usual, unit=Unit.SECONDS, source=counters)
    yield Evidence(key="left_before", value=block.gone, unit=Unit.MESSAGES, source=counters)
    yield Evidence(
        key="published",
        value=delta(run, "publish"),
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.publish"),
        facts={"over_seconds": span(run)},
    )
    yield Evidence(
        key="ready", value=queue.messages_ready or 0, unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")
    )
    if block.targets:
        yield Evidence(
            key="target",
            value=arrived,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.ack", "message_stats.publish", "messages"),
            facts={"over_seconds": span(run)},
        )
    if block.idle is not None:
        yield Evidence(key="idle", value=block.idle, unit=Unit.SECONDS, source=source("/api/channels", "idle_since"))
