"""delay-target-full: a queue at its length limit loses what is dead-lettered into it, from delay queues or by rejects.

Dead letters have no publisher that could be refused: a full classic queue with overflow reject-publish drops them
silently, and one with drop-head drops its oldest messages. What left the other queues is compared with what arrived. A
queue that only stores dead letters and drops the oldest may keep the latest few by design, so that is a warning at
most; with a limit of 1 or an explicit `overflow: drop-head` it is information.
"""

import math
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import ledger, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.routes import Place, dead_lettering, dead_letters_to, is_delay
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.publishers._shared.overflow import at_least_once, has_length_limit, level, refuses_when_full
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import (
    certainty,
    involved_queue,
    queue_refs,
    queue_subject,
    queue_with_policy,
)
from diagnosis.rules.queues._shared.waits import WaitFlow, gone, skew
from diagnosis.rules.queues.dlq_filling import rejecting_consumers
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "delay-target-full"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a length limit into which others dead-letter."""
    for place, sources in sorted(per_view(view, _sources).items()):
        target = view.queue(*place)
        if target is None or target.type == "stream" or not _full(view, target):
            continue
        if target.setting("dead-letter-exchange") is not None or not all(_is_counted(view, each) for each in sources):
            continue
        run = stretch(view.history(target), lambda older, newer: _full(view, older.value) and _full(view, newer.value))
        if span(run) < view.thresholds.early:
            continue
        found = _lost(view, target, sources, run)
        if found is not None:
            yield _finding(view, target, sources, run, *found)


def _sources(view: View) -> dict[Place, list[Queue]]:
    """Return by queue those that dead-letter into it alone; without queues that get others' dead letters as well."""
    found: dict[Place, list[Queue]] = {}
    mixed: set[Place] = set()
    for queue in dead_lettering(view):
        reached = dead_letters_to(view, queue) or frozenset()
        others = reached - {queue.key}
        for place in others:
            found.setdefault(place, []).append(queue)
        if len(others) > 1 and not is_delay(view, queue):
            mixed |= others
    return {place: sources for place, sources in found.items() if place not in mixed}


def _is_counted(view: View, queue: Queue) -> bool:
    """Return whether counters tell what leaves a queue as a dead letter."""
    if is_delay(view, queue):
        return WaitFlow.of(view, queue).fed_by_publishes()
    return not (at_least_once(queue) or may_settle_unseen(view, queue))


def _full(view: View, queue: Queue) -> bool:
    return has_length_limit(queue) and level(queue) >= view.limits(queue).queues.full_share


def _lost(view: View, target: Queue, sources: list[Queue], run: Series[Queue]) -> tuple[int, int] | None:
    """Return how many messages left the other queues as dead letters, and how many of these were lost; None if none."""
    whole = balance(run)
    # What publishers lose here as well is reported by other rules.
    if whole is None or whole.published:
        return None
    out = proven = 0
    for queue in sources:
        part = _within(view.history(queue), run)
        if is_delay(view, queue):
            left = max(0, gone(part))
            least = max(0, left - math.ceil(skew(view, queue, part)))
        else:
            found = ledger(part, may_hold(view, queue), skew=view.limits(queue).queues.loss_skew)
            if found is None:
                continue
            left = found.discarded + found.vanished
            least = found.proven_discarded + found.proven_vanished
        out, proven = out + left, proven + least
    arrived = max(0, whole.rejected - whole.missing)
    enough = max(view.limits(target).queues.loss_least, skew(view, target, run))
    return (out, out - arrived) if proven - arrived >= enough else None


def _severity(*, lasts: bool, keeps_latest: bool, by_design: bool) -> Severity:
    if keeps_latest:
        return Severity.WARNING if lasts and not by_design else Severity.INFO
    return Severity.CRITICAL if lasts else Severity.WARNING


def _within(history: Series[Queue], run: Series[Queue]) -> Series[Queue]:
    first: Timestamped[Queue] = run[0]
    return tuple(seen for seen in history if seen.at.mono >= first.at.mono)


def _finding(view: View, target: Queue, sources: list[Queue], run: Series[Queue], out: int, lost: int) -> Finding:
    seconds, rejects = span(run), any(not is_delay(view, each) for each in sources)
    drops_oldest, explicit = not refuses_when_full(target), target.setting("overflow") == "drop-head"
    keeps_latest = rejects and drops_oldest and (not target.consumers or explicit)
    length, limit = target.setting("max-length"), view.limits(target).queues.maxlen_for
    by_design = explicit or length == 1
    severity = _severity(lasts=seconds >= limit, keeps_latest=keeps_latest, by_design=by_design)
    counters = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
    rejecting = [link for each in sources if not is_delay(view, each) for link in rejecting_consumers(view, each)]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(target),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, target),
            "ready": target.messages_ready or 0,
            "max_length": length if isinstance(length, int) else None,
            "max_length_bytes": target.setting("max-length-bytes"),
            "ready_bytes": target.message_bytes_ready,
            "longer_limit": 10 * length if isinstance(length, int) else None,
            "limit_is_argument": "x-max-length" in target.arguments,
            "drops_oldest": drops_oldest,
            "keeps_latest": keeps_latest,
            "by_design": by_design,
            "warning_after_seconds": limit,
            "rejects": rejects,
            "rejecting": client_names(rejecting),
            "consumers": target.consumers or 0,
            "delay_queues": [each.name for each in sources],
            "expired": out,
            "lost": lost,
            "over_seconds": seconds,
        },
        certainty=Certainty.CERTAIN if by_design else certainty(severity, seconds, limit, Certainty.CERTAIN),
        seen_seconds=seconds,
        evidence=(
            Evidence(key="expired", value=out, unit=Unit.MESSAGES, source=counters, facts={"over_seconds": seconds}),
            Evidence(key="lost", value=lost, unit=Unit.MESSAGES, source=counters),
            Evidence(key="ready", source=source("/api/queues", "messages_ready", "arguments")),
        ),
        involved=involved_queue(target, (*view.links(target), *rejecting), queue_refs(sources)),
    )
