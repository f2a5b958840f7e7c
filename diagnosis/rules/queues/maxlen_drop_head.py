"""maxlen-drop-head (C03): a full queue drops its oldest messages, which is the default, and nobody is informed.

Three signs together: the queue stays at its length limit, its overflow is `drop-head`, and messages are lost that no
client consumed or rejected. All publishes are confirmed. It is also reported if the queue was full and is not now,
because its consumers caught up or somebody purged it. A delay queue loses nothing this way, but its messages leave it
before their TTL.

What a queue refused before its overflow was changed was nacked, and is no part of this.

The counters of a busy queue prove a small share of loss only after minutes, because each is up to 5 s old. A queue that
stays just below its limit while more is published than consumed drops the rest: likely at once, critical when proven.

A limit that is set while a queue holds more drops the rest at once (`diagnosis.rules.queues._shared.limit_cuts`). What
a queue dropped before the first reading is known of one that is full, and from which nothing was ever delivered.

Bursts may fill a queue between two readings, so that none shows it full. If it has consumers and no TTL, and loses
messages again and again in steps in which as much came as fills it, its limit is the likely reason.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from ackscope.findings import Certainty, Evidence, Fact, Facts, Finding, Severity, Suppressed, source
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.ledger import from_its_beginning, levels, losing, may_have_lost, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.relations import SAME_SUBJECT
from diagnosis.routes import dead_letters_to, is_delay
from diagnosis.rules.publishers._shared.overflow import (
    has_length_limit,
    level,
    refuses_when_full,
    since_it_drops,
)
from diagnosis.rules.queues._shared.limit_cuts import LimitCut, limit_cut
from diagnosis.rules.queues._shared.message_balance import (
    MessageBalance,
    balance,
    balance_evidence,
    balance_facts,
    lasts,
    losing_run,
    proven_loss,
)
from diagnosis.rules.queues._shared.queue import (
    MAX_NAMED,
    certainty,
    involved_queue,
    operator_settings,
    queue_subject,
    queue_with_policy,
)
from diagnosis.rules.queues._shared.unserved_work import is_work
from diagnosis.rules.queues._shared.waits import cut_short
from diagnosis.rules.queues.queue_purged import purged_from
from diagnosis.series import delta, span, steps, stretch
from diagnosis.window import Series

NAME = "maxlen-drop-head"

_AT_LIMIT, _READINGS, _STAYS = 0.97, 4, 20.0
"""Median level, readings and seconds from which on a queue stays at its limit; else it would rise or fall meanwhile."""
_BURSTS, _MOST, _LOW = 3, 0.8, 0.25
"""Least number of steps in which bursts fill a queue, because a purge takes all at once; their least share of the loss;
and the highest median level of the readings: messages that wait below the limit for longer leave for another reason.
"""

_LARGE, _UNEQUAL, _FITS = 0.5, 5.0, 5.0
"""Share of the limit that large messages take, how many times as large as the small ones they are, and how many of them
a higher limit should hold.
"""
_ALIKE: Facts = {"small_bytes": None, "large_bytes": None, "max_length_bytes_raised": None}


@dataclass(frozen=True, slots=True)
class FillingBurst:
    """The most that came to a queue between two readings in which it lost messages; bytes are None if unknown."""

    messages: int
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppingQueue:
    """A queue that drops its oldest messages, or dropped them.

    Attributes:
        run: the readings in which it did.
        found: their balance.
        ended: whether it is not full any more.
        proven: whether the counters prove the number of lost messages.
        burst: what fills it between two readings; None if readings show it full.
        cut: the new limit that removed what was beyond it; None if it fills up to its limit.
        in_all: messages that it lost by that and since.
        earlier: whether it dropped them before the first reading.
        seconds: for how long.
    """

    queue: Queue
    run: Series[Queue]
    found: MessageBalance
    ended: bool
    proven: bool
    seconds: float
    severity: Severity
    burst: FillingBurst | None = None
    cut: LimitCut | None = None
    in_all: int = 0
    earlier: bool = False


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a length limit that drops its oldest messages."""
    yield from per_view(view, _full_delays).values()
    for each in dropping(view):
        exchange = each.queue.setting("dead-letter-exchange")
        if isinstance(exchange, str):
            facts = {"exchange": exchange}
            yield Suppressed(rule=NAME, subject=queue_subject(each.queue), reason="dead_lettered", facts=facts)
        else:
            yield _finding(view, each)


def dropping(view: View) -> tuple[DroppingQueue, ...]:
    """Return the queues that drop their oldest messages, also those that dead-letter them."""
    return per_view(view, _dropping)


def _dropping(view: View) -> tuple[DroppingQueue, ...]:
    return tuple(found for queue in per_view(view, _limited_queues) if (found := _of(view, queue)) is not None)


def _of(view: View, queue: Queue) -> DroppingQueue | None:
    if queue.key in per_view(view, _full_delays):
        return None
    found, cut = _drops(view, queue), limit_cut(view, queue)
    return _cut(view, queue, cut, found) if cut is not None else found or _before(view, queue)


def _full_delays(view: View) -> dict[tuple[str, str], Finding]:
    """Return the findings about delay queues whose messages do not wait for their TTL, by queue."""
    delays = (queue for queue in per_view(view, _limited_queues) if is_delay(view, queue))
    return {queue.key: found for queue in delays if (found := _early(view, queue)) is not None}


def _drops(view: View, queue: Queue) -> DroppingQueue | None:
    limits = view.limits(queue).queues
    recent = losing_run(view, queue, partial(_full, limits.full_share))
    whole = _since_it_is_known(view, queue, limits.full_share)
    found = max((each for each in (recent, whole) if each is not None), key=lambda it: it[1].lost, default=None)
    proven, ended = found is not None, not _full(limits.full_share, queue)
    found = found or _stays_full(view, queue)
    if found is None:
        return _in_bursts(view, queue)
    # Counters from before would add what it refused.
    history = view.history(queue)
    counted = proven and not ended and len(since_it_drops(view, history)) == len(history)
    seconds = lasts(view, *found) if counted else span(found[0])
    severity = _severity(view, queue, found[0], seconds, ended=ended)
    if not proven and severity is Severity.CRITICAL:
        severity = Severity.WARNING
    return DroppingQueue(
        queue=queue, run=found[0], found=found[1], ended=ended, proven=proven, seconds=seconds, severity=severity
    )


def _early(view: View, queue: Queue) -> Finding | None:
    """Return the finding about a delay queue whose messages do not wait for their TTL; None if they do, or may do."""
    share = view.limits(queue).queues.full_share
    run = stretch(view.history(queue), lambda older, newer: _full(share, older.value) and _full(share, newer.value))
    if span(run) < view.thresholds.early:
        return None
    rate = delta(run, "publish") / span(run)
    delay = cut_short(view, queue, rate, rate)
    whole, targets = balance(run), sorted(dead_letters_to(view, queue) or ())
    if delay is None or whole is None or not targets:
        return None
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            **_limit_facts(queue),
            **_ALIKE,
            **balance_facts(whole),
            "consumers": 0,
            "may_be_meant": False,
            "cut": None,
            "earlier": False,
            "ended": False,
            "proven": True,
            "newest_only": _keeps_newest_only(queue),
            "critical_after_seconds": view.limits(queue).queues.maxlen_for,
            "delay": delay,
            "targets": [name for _, name in targets],
            **_burst_facts(queue, None),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=span(run),
        evidence=(_ready_evidence(), balance_evidence(whole)[0]),
        involved=involved_queue(queue),
    )


def _limited_queues(view: View) -> tuple[Queue, ...]:
    return tuple(queue for queue in view.queues if _limited(queue))


def _limited(queue: Queue) -> bool:
    return has_length_limit(queue) and not refuses_when_full(queue) and queue.type != "stream"


def _full(share: float, queue: Queue) -> bool:
    return level(queue) >= share


def _since_it_is_known(view: View, queue: Queue, share: float) -> tuple[Series[Queue], MessageBalance] | None:
    """Return the readings in which a queue lost messages that was full then, and the balance of all its readings.

    Where traffic was brief or has ended, the balance of all readings proves what that of the full ones cannot. What was
    purged is left to the rule about that, and so is a queue whose messages expire.
    """
    if not may_have_lost(view, queue) or may_settle_unseen(view, queue) or queue.setting("message-ttl") is not None:
        return None
    history = since_it_drops(view, from_its_beginning(view, queue))
    if not any(_full(share, seen.value) for seen in history):
        return None
    purged = purged_from(view, queue)
    found, whole = proven_loss(view, queue, history, purged), balance(history)
    if found is None or whole is None or whole.lost - purged < view.limits(queue).queues.loss_least:
        return None
    # Purged messages are stored nowhere, and are no loss of this kind.
    return losing(history, lambda each: each.vanished, found.vanished), replace(whole, stored=whole.stored + purged)


def _stays_full(view: View, queue: Queue) -> tuple[Series[Queue], MessageBalance] | None:
    """Return the readings in which a queue stays at its limit, and their balance; None unless messages are lost."""
    if may_settle_unseen(view, queue) or queue.setting("message-ttl") is not None or not view.moved(queue, "publish"):
        return None
    limits = view.limits(queue).queues
    run = stretch(
        since_it_drops(view, view.history(queue)),
        lambda older, newer: min(level(older.value), level(newer.value)) >= limits.full_share,
    )
    if len(run) < _READINGS or span(run) < _STAYS or median(level(seen.value) for seen in run) < _AT_LIMIT:
        return None
    halves = (balance(run[: len(run) // 2 + 1]), balance(run[len(run) // 2 :]))
    if not all(each is not None and each.lost for each in halves):
        return None
    whole = balance(run)
    enough = whole is not None and whole.lost >= max(limits.loss_least, limits.loss_share * whole.published)
    return (run, whole) if whole is not None and enough else None


def _cut(view: View, queue: Queue, cut: LimitCut, going_on: DroppingQueue | None) -> DroppingQueue:
    """Return a queue that a new limit cut; it held more until then, so it keeps no newest few on purpose."""
    run = (cut.before, cut.after)
    stored = (cut.after.value.messages_ready or 0) - (cut.before.value.messages_ready or 0)
    delivered = -stored - cut.lost
    known = (Severity.WARNING, *([] if going_on is None else [going_on.severity]))
    severity = min(known, key=lambda each: each.urgency)
    return DroppingQueue(
        queue=queue,
        run=run,
        found=MessageBalance(published=0, consumed=delivered, stored=stored, rejected=0, seconds=span(run)),
        ended=not (_full(view.limits(queue).queues.full_share, queue) and view.moved(queue, "publish")),
        proven=True,
        seconds=span(run),
        severity=severity,
        cut=cut,
        in_all=cut.lost if going_on is None else max(cut.lost, going_on.found.lost),
    )


def _before(view: View, queue: Queue) -> DroppingQueue | None:
    """Return a full queue from which nothing was ever delivered, and that holds fewer messages than came; else None.

    Counters of clients that ended may be missing, so a queue that was ever served proves nothing. One that is
    configured to drop its oldest messages does so on purpose.
    """
    limits, history, now = view.limits(queue).queues, view.history(queue), levels(queue)
    if now is None or queue.consumers != 0 or now.delivered or now.auto or not _full(limits.full_share, queue):
        return None
    if any(queue.setting(name) is not None for name in ("message-ttl", "dead-letter-exchange", "overflow")):
        return None
    lost, seconds = now.vanished - now.held - delta(history, "publish"), span(history)
    if _keeps_newest_only(queue) or may_settle_unseen(view, queue):
        return None
    if len(since_it_drops(view, history)) < max(2, len(history)):
        return None
    if lost < max(limits.loss_least, limits.loss_share * now.arrived):
        return None
    return DroppingQueue(
        queue=queue,
        run=history,
        found=MessageBalance(published=now.arrived, consumed=0, stored=now.arrived - lost, rejected=0, seconds=seconds),
        ended=True,
        proven=True,
        seconds=seconds,
        severity=Severity.INFO,
        earlier=True,
    )


def _in_bursts(view: View, queue: Queue) -> DroppingQueue | None:
    """Return a queue that loses messages again and again, and may be full between two readings; else None."""
    found = losing_run(view, queue) if queue.consumers and queue.setting("message-ttl") is None else None
    if found is None:
        return None
    run, whole = found
    if median(level(seen.value) for seen in run) > _LOW:
        return None
    pairs = steps(run, view.limits(queue).interval)
    lost = [(each, some.lost) for each in pairs if (some := balance(each)) and some.lost]
    filled = [(burst, many) for each, many in lost if _fills(queue, burst := _burst(each))]
    if len(filled) < _BURSTS or sum(many for _, many in filled) < _MOST * sum(many for _, many in lost):
        return None
    long = span(run) >= view.limits(queue).queues.maxlen_for and not _keeps_newest_only(queue)
    return DroppingQueue(
        queue=queue,
        run=run,
        found=whole,
        ended=False,
        proven=True,
        seconds=span(run),
        severity=Severity.WARNING if long else Severity.INFO,
        burst=max((each for each, _ in filled), key=lambda each: (each.size or 0, each.messages)),
    )


def _burst(pair: Series[Queue]) -> FillingBurst:
    """Return what a queue held or got in a step; readings of it tell the size of its messages where they show some."""
    shown = [seen.value for seen in pair if seen.value.message_bytes and seen.value.messages]
    size = max(((each.message_bytes or 0) / (each.messages or 1) for each in shown), default=None)
    messages = (pair[0].value.messages_ready or 0) + delta(pair, "publish")
    return FillingBurst(messages, None if size is None else round(messages * size))


def _fills(queue: Queue, burst: FillingBurst) -> bool:
    length, size = queue.setting("max-length"), queue.setting("max-length-bytes")
    if isinstance(length, int) and burst.messages >= length:
        return True
    return isinstance(size, int) and (burst.size is None or burst.size >= size)


def _severity(view: View, queue: Queue, run: Series[Queue], seconds: float, *, ended: bool) -> Severity:
    """Return the severity; no consumer, a limit of 1 or a configured drop-head may mean that it loses by design."""
    share = view.limits(queue).queues.full_share
    consumed = any(seen.value.consumers for seen in run if _full(share, seen.value)) if ended else queue.consumers
    if (
        not (consumed or is_work(view, queue))
        or _keeps_newest_only(queue)
        or seconds < view.limits(queue).queues.maxlen_for
    ):
        return Severity.INFO
    goes_on = not ended and view.moved(queue, "publish")
    return Severity.CRITICAL if goes_on and queue.setting("overflow") != "drop-head" else Severity.WARNING


def _keeps_newest_only(queue: Queue) -> bool:
    """Return whether only the newest message matters: a limit of 1 protects nothing, it keeps the last value."""
    return bool(queue.setting("max-length") == 1)


def _by_filling(view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.facts["cut"] is not None else SAME_SUBJECT.of_other(view, finding)


FILLED = Relation(SAME_SUBJECT.of_cause, _by_filling)
"""The cause lets a queue fill up; the effect is that it drops messages, and not that a new limit cut it."""


def _finding(view: View, dropping: DroppingQueue) -> Finding:
    queue, found, seconds = dropping.queue, dropping.found, dropping.seconds
    limit = view.limits(queue).queues.maxlen_for
    unsure = (dropping.ended and dropping.cut is None) or not dropping.proven or dropping.burst is not None
    return Finding(
        rule=NAME,
        severity=dropping.severity,
        subject=queue_subject(queue),
        since=None if dropping.earlier else dropping.run[0].at.iso(),
        over_since=dropping.cut.after.at.iso() if dropping.cut is not None and dropping.ended else None,
        facts={
            "queue": queue_with_policy(view, queue),
            **_limit_facts(queue),
            **_size_facts(view, queue),
            **balance_facts(found),
            "consumers": queue.consumers or 0,
            "may_be_meant": not queue.consumers and not is_work(view, queue),
            "cut": None if dropping.cut is None else _cut_facts(view, dropping.cut),
            "earlier": dropping.earlier,
            "ended": dropping.ended,
            "proven": dropping.proven,
            "newest_only": _keeps_newest_only(queue),
            "critical_after_seconds": limit,
            "delay": None,
            "targets": [],
            **_burst_facts(queue, dropping.burst),
        },
        accounted=None if dropping.earlier else max(found.lost, dropping.in_all),
        certainty=Certainty.LIKELY if unsure else certainty(dropping.severity, seconds, limit),
        seen_seconds=seconds,
        evidence=(
            _ready_evidence(),
            *balance_evidence(found),
        ),
        involved=involved_queue(queue, view.links(queue)),
    )


def _cut_facts(view: View, cut: LimitCut) -> dict[str, Fact]:
    """Return facts about a new limit.

    Returns:
        `{"ready_before", "ready_after", "before_at", "at", "policy", "by_operator", "others", "other_count"}`:
        `policy` sets the limit, None if that is not known; `others` are queues that it governs as well.
    """
    queue = cut.after.value
    by_operator = any(name in operator_settings(view, queue) for name in ("max-length", "max-length-bytes"))
    policy = queue.operator_policy if by_operator else queue.policy
    own = [each for each in view.queues if policy and each.vhost == queue.vhost and each.name != queue.name]
    governed = [each.name for each in own if policy == (each.operator_policy if by_operator else each.policy)]
    others: list[Fact] = [*sorted(governed)]
    return {
        "ready_before": cut.before.value.messages_ready,
        "ready_after": queue.messages_ready,
        "before_at": cut.before.at.iso(),
        "at": cut.after.at.iso(),
        "policy": policy,
        "by_operator": by_operator,
        "others": others[:MAX_NAMED],
        "other_count": len(others),
    }


def _burst_facts(queue: Queue, burst: FillingBurst | None) -> dict[str, Fact]:
    """Return the burst, and the limits that would hold twice as much; all None without a burst or with fixed limits."""
    if burst is None:
        return {"burst_messages": None, "burst_bytes": None, "raised_limits": None}
    sizes = {"max-length": burst.messages, "max-length-bytes": burst.size}
    own = {name: limit for name in sizes if isinstance(limit := queue.setting(name), int)}
    fixed = any(f"x-{name}" in queue.arguments for name in own)
    raised: dict[str, Fact] = {name: 2 * max(limit, sizes[name] or 0) for name, limit in own.items()}
    return {
        "burst_messages": burst.messages,
        "burst_bytes": burst.size,
        "raised_limits": None if fixed else raised,
    }


def _ready_evidence() -> Evidence:
    fields = ("messages_ready", "message_bytes_ready", "arguments", "effective_policy_definition")
    return Evidence(key="ready", source=source("/api/queues", *fields))


def _size_facts(view: View, queue: Queue) -> Facts:
    """Return the smallest mean size of the waiting messages, and how large one of them was at least.

    None unless a limit of bytes is in force and one message takes half of it, so that it pushes out many small ones.
    """
    limit, readings = queue.setting("max-length-bytes"), [seen.value for seen in view.history(queue)]
    shown = [(each.message_bytes or 0, each.messages) for each in readings if each.message_bytes and each.messages]
    small = min((size / number for size, number in shown), default=0.0)
    # What small ones do not account for is of one or more large ones.
    large = max(((size - (number - 1) * small) for size, number in shown), default=0.0)
    if not isinstance(limit, int) or large < _LARGE * limit or large < _UNEQUAL * small:
        return _ALIKE
    raised = None if "x-max-length-bytes" in queue.arguments else max(limit, round(_FITS * large))
    return {"small_bytes": round(small), "large_bytes": round(large), "max_length_bytes_raised": raised}


def _limit_facts(queue: Queue) -> dict[str, Fact]:
    length, size = queue.setting("max-length"), queue.setting("max-length-bytes")
    limits = {"max-length": length, "max-length-bytes": size}
    return {
        "ready": queue.messages_ready,
        "ready_bytes": queue.message_bytes_ready,
        "max_length": length if isinstance(length, int) else None,
        "max_length_bytes": size if isinstance(size, int) else None,
        "overflow": queue.setting("overflow"),
        "overflow_is_argument": "x-overflow" in queue.arguments,
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
    }
