"""delay-target-full: a queue at its length limit loses what expires into it from delay queues.

Dead letters have no publisher that could be refused: a full classic queue with overflow reject-publish drops them
silently, and one with drop-head drops its oldest messages. What left the delay queues is compared with what arrived.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.memo import per_view
from diagnosis.routes import Place, dead_letters_to, is_delay
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import involved_queue, queue_refs, queue_subject, queue_with_policy
from diagnosis.rules.queues._shared.waits import WaitFlow, gone, skew
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "delay-target-full"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a length limit that delay queues lead to, and nothing else does by dead letters."""
    for place, sources in sorted(per_view(view, _delays_into).items()):
        target = view.queue(*place)
        if target is None or target.type == "stream" or not _full(view, target):
            continue
        if target.setting("dead-letter-exchange") is not None or not all(
            WaitFlow.of(view, each).fed_by_publishes() for each in sources
        ):
            continue
        run = stretch(view.history(target), lambda older, newer: _full(view, older.value) and _full(view, newer.value))
        if span(run) < view.thresholds.early:
            continue
        found = _lost(view, target, sources, run)
        if found is not None:
            yield _finding(view, target, sources, run, *found)


def _delays_into(view: View) -> dict[Place, list[Queue]]:
    """Return by queue the delay queues that lead to it alone; without queues that others dead-letter into as well."""
    found: dict[Place, list[Queue]] = {}
    mixed: set[Place] = set()
    for queue in view.queues:
        reached = dead_letters_to(view, queue) or frozenset()
        for place in reached - {queue.key}:
            if is_delay(view, queue):
                found.setdefault(place, []).append(queue)
            else:
                mixed.add(place)
    return {place: sources for place, sources in found.items() if place not in mixed}


def _full(view: View, queue: Queue) -> bool:
    length = queue.setting("max-length")
    return isinstance(length, int) and (queue.messages_ready or 0) >= view.limits(queue).queues.full_share * length


def _lost(view: View, target: Queue, sources: list[Queue], run: Series[Queue]) -> tuple[int, int] | None:
    """Return how many messages left the delay queues and how many of these were lost; None if none was."""
    whole = balance(run)
    # What publishers lose here as well is reported by other rules.
    if whole is None or whole.published:
        return None
    parts = [_within(view.history(queue), run) for queue in sources]
    out = sum(max(0, gone(part)) for part in parts)
    lost = out - max(0, whole.rejected - whole.missing)
    unsure = skew(view, target, run) + sum(skew(view, queue, part) for queue, part in zip(sources, parts, strict=True))
    return (out, lost) if lost >= max(view.limits(target).queues.loss_least, unsure) else None


def _within(history: Series[Queue], run: Series[Queue]) -> Series[Queue]:
    first: Timestamped[Queue] = run[0]
    return tuple(seen for seen in history if seen.at.mono >= first.at.mono)


def _finding(view: View, target: Queue, sources: list[Queue], run: Series[Queue], out: int, lost: int) -> Finding:
    seconds, limit = span(run), view.limits(target).queues.maxlen_for
    overflow = target.setting("overflow")
    counters = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if seconds >= limit else Severity.WARNING,
        subject=queue_subject(target),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(target),
            "ready": target.messages_ready or 0,
            "max_length": target.setting("max-length"),
            "longer_limit": 10 * int(target.setting("max-length")),
            "limit_is_argument": "x-max-length" in target.arguments,
            "drops_oldest": not (isinstance(overflow, str) and overflow.startswith("reject-publish")),
            "consumers": target.consumers or 0,
            "delay_queues": [each.name for each in sources],
            "expired": out,
            "lost": lost,
            "over_seconds": seconds,
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=(
            Evidence(key="expired", value=out, unit=Unit.MESSAGES, source=counters, facts={"over_seconds": seconds}),
            Evidence(key="lost", value=lost, unit=Unit.MESSAGES, source=counters),
            Evidence(key="ready", source=source("/api/queues", "messages_ready", "arguments")),
        ),
        involved=involved_queue(target, view.links(target), queue_refs(sources)),
    )
