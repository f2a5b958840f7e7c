"""messages-discarded: queues deleted or refused messages, and totals of the cluster say for which reason.

It is for clusters without a management API. Only the Prometheus endpoints are read there, and no setting of a queue is
known, so the rules that name a kind of loss by limits, times to live and dead-letter exchanges cannot judge. The
endpoints count, for each type of queue and reason, what queues without a dead-letter exchange deleted; these totals
name no queue. The ledger of a queue shows how many messages left it and were not acknowledged. A queue is named if it
is the only one whose ledger lacks about as many messages as were counted, through several values of the total.
Otherwise the finding is about the cluster and lists the candidates. What queues refused is not counted: it is what
publishers sent with confirms, and is neither confirmed nor unconfirmed.
Source: https://www.rabbitmq.com/docs/prometheus; counters seen on 4.0.5 and 4.3.6
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_names
from diagnosis.hold_time import may_hold
from diagnosis.ledger import from_its_beginning, ledger, levels
from diagnosis.purpose import was_consumed
from diagnosis.rules.consumers._shared.by_totals import DELETED_BY
from diagnosis.rules.nodes._shared.node_history import cluster_subject
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import count, span
from diagnosis.unattributed import TOTALS, counted, of_type
from diagnosis.window import Series, Timestamped

NAME = "messages-discarded"

REFUSED = "refused"
_REFUSED_BY = source(
    TOTALS, "rabbitmq_global_messages_received_confirm_total", "rabbitmq_global_messages_confirmed_total"
) + source(TOTALS, "rabbitmq_channel_messages_unconfirmed")
_DELIVERED = ("rejected", "over_limit")
"""Reasons for which a message is deleted after a delivery."""
_TYPES = ("classic", "quorum")
_SLACK = 0.1
"""Share by which what left a queue may differ from what was counted: the counters are refreshed at different times."""
_MOST_ERROR = 0.5
"""Largest error of a ledger, as a share of what was counted, that may explain a difference between both."""
_STEPS = 3
"""Values of a total that the counters of a queue must follow."""
_SHOWN = 5

_Left = tuple[tuple[Queue, int, int], ...]
"""Queues that messages left, with how many, and the error of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Discards:
    """What queues of one type deleted for one reason.

    Attributes:
        kind: the type; None for all types.
        run: the readings between which the total rose.
        left: queues whose messages may be among these, with how many left each of them.
        queue: the one that deleted them; None if several may have.
    """

    kind: str | None
    reason: str
    lost: int
    run: Series[int]
    left: tuple[tuple[Queue, int], ...]
    queue: Queue | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each queue that deleted messages, and one for all totals that fit no single queue."""
    if not view.reads_only_metrics:
        return
    by_queue: dict[tuple[str, str] | None, list[_Discards]] = defaultdict(list)
    for kind in _TYPES:
        for reason in DELETED_BY:
            for found in _discards(view, kind, reason, _deleted(view, kind, reason)):
                by_queue[None if found.queue is None else found.queue.key].append(found)
    for refused in _discards(view, None, REFUSED, _refused(view)):
        # A publisher that ends before its confirms are counted looks the same, and no queue lacks its messages.
        if refused.left:
            by_queue[None if refused.queue is None else refused.queue.key].append(refused)
    for discards in by_queue.values():
        yield _finding(view, discards)


def _deleted(view: View, kind: str, reason: str) -> Series[int]:
    number = of_type(kind, reason)
    found = ((seen.at, number(seen.value)) for seen in counted(view))
    return tuple(Timestamped(at, value) for at, value in found if value is not None)


def _refused(view: View) -> Series[int]:
    """Return how many publishes were neither confirmed nor can be unconfirmed, at least; only the increase counts.

    The number of unconfirmed ones is some seconds old, so the largest one that was seen is used.
    """
    found: list[tuple[Instant, int]] = []
    unconfirmed = 0
    for at, value in ((seen.at, seen.value) for seen in counted(view)):
        if value.to_confirm is None or value.confirmed is None or value.unconfirmed is None:
            continue
        found.append((at, value.to_confirm - value.confirmed))
        unconfirmed = max(unconfirmed, value.unconfirmed)
    if not found:
        return ()
    # It never falls, so no earlier value exceeds a later one.
    least = list(accumulate((missing for _, missing in reversed(found)), min))[::-1]
    values = [least[0], *(max(least[0], missing - unconfirmed) for missing in least[1:])]
    return tuple(Timestamped(at, value) for (at, _), value in zip(found, values, strict=True))


def _discards(view: View, kind: str | None, reason: str, known: Series[int]) -> Iterator[_Discards]:
    if len(known) < 2:
        return
    values = [seen.value for seen in known]
    lost = values[-1] - values[0]
    if lost < view.thresholds.queues.loss_least:
        return
    first = next(place for place, value in enumerate(values) if value > values[0])
    last = next(place for place, value in enumerate(values) if value == values[-1])
    run, left = known[first - 1 : last + 1], tuple(_left(view, kind, reason, known[-1].at))
    named = _named(view, kind, reason, known, left)
    # The probes lose messages on purpose.
    own = view.thresholds.own_prefixes
    likely = [(each, messages) for each, messages, error in left if messages > error]
    candidates = tuple(pair for pair in likely if not pair[0].name.startswith(own))
    if not named and (candidates or not likely):
        yield _Discards(kind=kind, reason=reason, lost=lost, run=run, left=candidates, queue=None)
    numbers = {each.key: messages for each, messages, _ in left}
    for queue in named:
        if not queue.name.startswith(own):
            theirs = lost if len(named) == 1 else numbers[queue.key]
            only = tuple(pair for pair in candidates if pair[0].key == queue.key or len(named) == 1)
            yield _Discards(kind=kind, reason=reason, lost=theirs, run=run, left=only, queue=queue)


def _left(view: View, kind: str | None, reason: str, until: Instant) -> Iterator[tuple[Queue, int, int]]:
    """Yield the queues that messages left, after a delivery or before one, with how many, and the error of that."""
    for queue in view.every_queue:
        # The endpoints do not tell the type of a queue before 4.1.
        now = levels(queue) if kind is None or queue.type in (kind, None) else None
        if now is None or max(now.discarded, now.vanished) <= 0:
            continue
        history = tuple(seen for seen in from_its_beginning(view, queue) if seen.at.mono <= until.mono)
        found = ledger(history, may_hold(view, queue))
        if found is None:
            continue
        # What consumers return may expire then, or exceed a limit.
        delivered = reason in _DELIVERED or found.vanished <= 0
        messages, error = (
            (found.discarded, found.discarded_error) if delivered else (found.vanished, found.vanished_error)
        )
        if messages > 0:
            yield queue, messages, error


def _named(view: View, kind: str | None, reason: str, known: Series[int], latest: _Left) -> tuple[Queue, ...]:
    """Return the queue that lost as many messages as were counted, or all that did together; () if others may have.

    Their own counters must follow the total through several values. One value alone may be that of a queue which is
    gone by now, and as many as a busy queue only seems to lack; so it counts if the ledger is certain enough.
    """
    values = [seen.value for seen in known]
    ends = [place for place, value in enumerate(values) if place + 1 == len(values) or values[place + 1] != value]
    steps = [place for place in ends if values[place] > values[0]][-_STEPS:]
    found: tuple[Queue, ...] = ()
    for place in reversed(steps):
        lost = values[place] - values[0]
        left = latest if known[place] is known[-1] else tuple(_left(view, kind, reason, known[place].at))
        queues, error = _fitting(left, lost)
        if not queues or (found and {each.key for each in found} != {each.key for each in queues}):
            return ()
        if len(steps) < _STEPS and error > _MOST_ERROR * lost:
            return ()
        found = found or queues
    return found


def _fitting(left: _Left, lost: int) -> tuple[tuple[Queue, ...], int]:
    """Return the queues that lack about as many messages as were counted, and the error of that; () if none do.

    The error is an upper bound: what the queue moves in some seconds. So half of it must be lost at least, a large one
    explains no difference, and of several queues that fit, one is named if it fits much better. If all that
    certainly lack messages lack as many together, and none fits nearly as well alone, each of them lost its own.
    """
    near = []
    for queue, messages, error in left:
        off, slack = abs(messages - lost), _SLACK * lost
        if off <= slack + (error if error <= _MOST_ERROR * lost else 0) and 2 * lost >= error:
            near.append((off, queue, error))
    near.sort(key=itemgetter(0))
    certain = [each for each in left if each[1] > each[2]]
    off = abs(sum(each[1] for each in certain) - lost)
    if 1 < len(certain) <= _SHOWN and off <= _SLACK * lost and not (near and off + _SLACK * lost >= near[0][0] / 2):
        return tuple(each[0] for each in certain), sum(each[2] for each in certain)
    if len(near) == 1 or (near and near[0][0] + _SLACK * lost < near[1][0] / 2):
        return near[0][1:2], near[0][2]
    return (), 0


def _severity(view: View, discards: list[_Discards]) -> Severity:
    """Return a warning if work was lost: clients consume from each queue in question, and it is no small share."""
    limits = view.thresholds.queues
    for found in discards:
        queues = [found.queue] if found.queue is not None else [queue for queue, _ in found.left]
        least = max(limits.loss_least, limits.loss_share * sum(count(each.stats, "publish") for each in queues))
        if queues and all(map(was_consumed, queues)) and found.lost >= least:
            return Severity.WARNING
    return Severity.INFO


def _finding(view: View, discards: list[_Discards]) -> Finding:
    worst = max(discards, key=lambda each: each.lost)
    queue = worst.queue
    seconds = max(span(each.run) for each in discards)
    candidates = {each.key: (each, messages) for found in discards for each, messages in found.left}
    ranked = sorted(candidates.values(), key=lambda pair: (-pair[1], pair[0].key))
    return Finding(
        rule=NAME,
        severity=_severity(view, discards),
        subject=cluster_subject(view) if queue is None else queue_subject(queue),
        since=min(each.run[0].at.iso() for each in discards),
        facts={
            "queue": None if queue is None else queue_facts(queue),
            "reasons": [
                {"reason": each.reason, "queue_type": each.kind, "lost": each.lost, "seconds": span(each.run)}
                for each in discards
            ],
            "reason": worst.reason,
            "lost": sum(each.lost for each in discards),
            "over_seconds": seconds,
            "clients_unknown": True,
            "candidates": list[Fact](queue_names(each for each, _ in ranked)),
        },
        certainty=Certainty.CERTAIN if queue is None else Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=(
            *(
                Evidence(
                    key="counted",
                    value=each.lost,
                    unit=Unit.MESSAGES,
                    source=_REFUSED_BY if each.reason == REFUSED else DELETED_BY[each.reason],
                    facts={"reason": each.reason, "queue_type": each.kind},
                )
                for each in discards
            ),
            *(
                Evidence(
                    key="left",
                    value=messages,
                    unit=Unit.MESSAGES,
                    source=source("/api/queues", "message_stats.publish", "message_stats.ack", "messages"),
                    facts={"of": queue_facts(each)},
                )
                for each, messages in ranked[:_SHOWN]
            ),
        ),
        involved=Involved() if queue is None else involved_queue(queue, view.links(queue)),
    )
