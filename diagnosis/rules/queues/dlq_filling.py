"""dlq-filling (C05): the queue that takes dead letters grows; messages fail somewhere.

Arguments, policies and bindings show which queue takes dead letters; names are not used. A queue that clients empty as
fast as dead letters come does not grow, however many come. If an exchange copies the dead letters to several queues,
these have one finding.

Where only the Prometheus endpoints are read, a queue that nobody consumes takes dead letters if more arrive than are
published to it, and totals of the cluster count as many dead letters. Their queues are not known there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ackscope.findings import Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.preconditions import only_metrics
from diagnosis.purpose import CONSUMED, was_consumed
from diagnosis.routes import Place, dead_lettering, dead_letters_from, dead_letters_to, is_delay
from diagnosis.rules.consumers._shared.by_totals import DELETED_BY
from diagnosis.rules.consumers._shared.consumer_balances import consumer_balances, never_acknowledging
from diagnosis.rules.consumers._shared.discarded import expired_returns, time_to_live
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.consumers.poison_drop import at_limit, delivery_limit
from diagnosis.rules.queues._shared.message_balance import balance, latest_run
from diagnosis.rules.queues._shared.queue import MAX_NAMED, certainty, involved_queue, queue_refs, queue_subject
from diagnosis.series import REFRESH, delta, last, span
from diagnosis.unattributed import counted
from diagnosis.window import Series

NAME = "dlq-filling"

_FEW = 0.05
"""Share of the messages that leave the other queues below which dead letters are a few poison messages."""
_BEYOND = 2.0
"""Times as many redeliveries as the delivery limit needs, from which on more messages are returned than reach it."""
_EMPTIED = 0.1
"""Share of the dead letters from which on clients take messages from here regularly."""
_EMPTIED_FOR = 60.0
"""Seconds for which a queue must grow although clients remove half of the dead letters."""
_COUNTED = 0.7
"""Share of what arrived in a queue that totals must count as dead letters; both are refreshed at other times."""
_RETURNS, _ALL = 0.05, 0.7
"""Share of its deliveries that a client must have returned, and share of all returns that must be its own."""


@dataclass(frozen=True, slots=True)
class _Returning:
    """The only client that returns or rejects messages of a queue, by the counters of its channels."""

    links: tuple[ConsumerPath, ...]
    facts: dict[str, Fact]


@dataclass(frozen=True, slots=True)
class _Growth:
    """A queue that dead letters fill.

    Attributes:
        run: the readings during which it grew.
        sources: the queues whose messages come here; all that may, if none of them is seen to lose messages.
        reasons: why messages leave them.
        copied_to: all queues that get each of these dead letters.
        totals: reason -> dead letters of the cluster meanwhile, where the sources are not known.
    """

    queue: Queue
    run: Series[Queue]
    sources: list[Queue]
    reasons: list[dict[str, Fact]]
    copied_to: frozenset[Place]
    totals: dict[str, int] = field(default_factory=dict)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that others dead-letter into and that is not a delay queue."""
    if view.reads_only_metrics:
        yield from _by_totals(view)
        return
    sources = per_view(view, dead_letter_sources)
    known: set[tuple[tuple[Place, ...], frozenset[Place]]] = set()
    for queue in view.queues:
        if queue.key not in sources or not queue.messages_ready or is_delay(view, queue) or queue.type == "stream":
            continue
        run = _growing_run(view, queue)
        if not run:
            continue
        growth = _growth(view, queue, run, sources[queue.key])
        same = (tuple(each.key for each in growth.sources), growth.copied_to)
        if len(growth.copied_to) < 2 or same not in known:
            yield _finding(view, growth)
        known.add(same)


def _by_totals(view: View) -> Iterator[RuleResult]:
    """Judge queues that nobody consumes by what all queues dead-letter; the rule cannot tell about the others."""
    found = False
    for queue in view.queues:
        if not queue.messages_ready or queue.type == "stream" or was_consumed(queue):
            continue
        run = _growing_run(view, queue)
        totals = _dead_lettered(view, run) if run else {}
        # Messages of clients that are not counted, such as those of AMQP 1.0, arrive in the same way.
        if run and sum(totals.values()) >= _COUNTED * _arrived(run):
            found = True
            yield _finding(view, _Growth(queue, run, [], [], frozenset({queue.key}), totals))
    if not found:
        yield only_metrics(NAME)


def _dead_lettered(view: View, run: Series[Queue]) -> dict[str, int]:
    """Return, by reason, how many messages all queues gave to a dead-letter exchange during some readings."""
    begin, end = run[0].at.mono - REFRESH, run[-1].at.mono
    known = [seen.value.dead_lettered for seen in counted(view) if begin <= seen.at.mono <= end]
    if len(known) < 2:
        return {}
    rises = {reason: number - known[0].get(reason, number) for reason, number in known[-1].items()}
    return {reason: rise for reason, rise in sorted(rises.items(), key=lambda pair: -pair[1]) if rise > 0}


def _growth(view: View, queue: Queue, run: Series[Queue], sources: list[Queue]) -> _Growth:
    least = view.limits(queue).queues.loss_least
    # Of a queue that loses nothing, a counter may be a few messages late.
    losing = [each for each in sources if _missing(view, each, span(run)) >= least] or sources
    targets = [dead_letters_to(view, each) or frozenset() for each in losing]
    return _Growth(
        queue,
        run,
        losing,
        [reason for each in losing if (reason := _reason(view, each, span(run))) is not None],
        frozenset[Place].intersection(*targets) | {queue.key},
    )


def dead_letter_sources(view: View) -> dict[Place, list[Queue]]:
    """Return by queue the queues that dead-letter into it; messages that leave a delay queue are no dead letters."""
    found: dict[Place, list[Queue]] = {}
    for queue in dead_lettering(view):
        if queue.setting("dead-letter-exchange") is None or is_delay(view, queue):
            continue
        for target in sorted(dead_letters_to(view, queue) or ()):
            if target != queue.key:
                found.setdefault(target, []).append(queue)
    return found


def _growing_run(view: View, queue: Queue) -> Series[Queue]:
    """Return the latest stretch in which each interval grew the queue by more than was published to it; else empty.

    Only messages that arrived without a publish count, because a queue that is also used directly may grow for other
    reasons.
    """
    limits = view.limits(queue)
    history = view.history(queue)

    def grows(pair: Series[Queue]) -> bool:
        step = balance(pair)
        return step is not None and _ready(pair[-1].value) > _ready(pair[0].value) and step.missing < 0

    long = last(history, limits.queues.dead_letters_for)
    least = limits.queues.dead_letters_least
    if span(long) >= limits.queues.dead_letters_for and min(_arrived(long), _grown(long)) >= least:
        # Slower growth also counts if the queue never shrank: nobody handles even one message per minute.
        levels = [_ready(seen.value) for seen in long]
        if levels == sorted(levels):
            return long
    run = latest_run(history, limits.interval, grows)
    minimum = limits.queues.loss_least
    # The length of a queue that clients empty again and again rises by chance over a few readings.
    seconds = _EMPTIED_FOR if _mostly_emptied(run) else limits.early
    return run if span(run) >= seconds and min(_arrived(run), _grown(run)) >= minimum else ()


def _arrived(series: Series[Queue]) -> int:
    """Return the dead letters that arrived over a series; the broker does not count them as published."""
    whole = balance(series)
    return -whole.missing if whole is not None else 0


def _mostly_emptied(series: Series[Queue]) -> bool:
    return 2 * delta(series, *CONSUMED) >= _arrived(series)


def _grown(series: Series[Queue]) -> int:
    return _ready(series[-1].value) - _ready(series[0].value)


def _ready(queue: Queue) -> int:
    return queue.messages_ready or 0


def _finding(view: View, growth: _Growth) -> Finding:
    queue, run, sources, reasons = growth.queue, growth.run, growth.sources, growth.reasons
    limits = view.limits(queue).queues
    seconds, arrived, grown, removed = span(run), _arrived(run), _grown(run), delta(run, *CONSUMED)
    long_and_many = (
        seconds >= limits.dead_letters_for and grown >= limits.dead_letters_least and not _mostly_emptied(run)
    )
    severity = Severity.WARNING if long_and_many else Severity.INFO
    rejecting = [link for each in sources for link in never_acknowledging(view, each)]
    returning = _returning(view, sources[0]) if len(sources) == 1 and not rejecting else None
    share = _share(view, sources, run, arrived)
    copies = [place for place in sorted(growth.copied_to) if place != queue.key]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "arrived": arrived,
            "grown": grown,
            "removed": removed,
            "is_emptied": removed >= max(limits.loss_least, _EMPTIED * arrived),
            "dead_share": share,
            "few": (share is None or share < _FEW) and not any(each["others_returned"] for each in reasons),
            "over_seconds": seconds,
            "ready": queue.messages_ready,
            "source_count": len(sources),
            "sources": [each.name for each in sources[:MAX_NAMED]],
            "clients_unknown": view.reads_only_metrics,
            "totals": [{"reason": reason, "number": number} for reason, number in growth.totals.items()],
            "reasons": list[Fact](reasons[:3]),
            "copies": [name for _, name in copies[:MAX_NAMED]],
            "copy_count": len(copies),
            "rejecting": client_names(rejecting),
            "returning": returning.facts if returning else None,
            "rejected": not reasons or any(str(each["reason"]).startswith("rejected") for each in reasons),
            "warning_after_seconds": limits.dead_letters_for,
        },
        certainty=certainty(severity, seconds, limits.dead_letters_for),
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="arrived",
                value=arrived,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages", "message_stats"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
            Evidence(
                key="sources",
                source=source("/api/queues", "arguments", "effective_policy_definition") + source("/api/bindings"),
            )
            if sources
            else Evidence(
                key="totals",
                value=sum(growth.totals.values()),
                unit=Unit.MESSAGES,
                source=tuple(metric for each in DELETED_BY.values() for metric in each),
            ),
        ),
        involved=involved_queue(queue, returning.links if returning else rejecting, queue_refs(sources)),
    )


def rejecting_consumers(view: View, origin: Queue) -> tuple[ConsumerPath, ...]:
    """Return the consumers of a queue that return or reject its messages, as far as counters of channels prove it."""
    never = never_acknowledging(view, origin)
    if never:
        return tuple(never)
    found = _returning(view, origin)
    return found.links if found else ()


def _share(view: View, sources: list[Queue], run: Series[Queue], arrived: int) -> float | None:
    """Return the share of dead letters among the messages that left their queues; None if it is unknown."""
    if any(may_settle_unseen(view, each) for each in sources):
        return None
    parts = [[seen for seen in view.history(each) if seen.at.mono >= run[0].at.mono] for each in sources]
    return arrived / (arrived + sum(delta(tuple(part), *CONSUMED) for part in parts))


def _returning(view: View, origin: Queue) -> _Returning | None:
    """Return the client that returns or rejects messages of a queue, if no other one can; None if it is not known."""
    begin, links = view.channels_before, view.links(origin)
    recent = tuple(seen for seen in view.history(origin) if begin is not None and seen.at.mono >= begin.mono - 1.0)
    whole, known = balance(recent), consumer_balances(view, origin)
    if whole is None or not links or len(known) < len(links) or delta(recent, "get"):
        return None
    own = [each for each in known if each.rejected >= max(1.0, _RETURNS * each.sent)]
    names, returned = client_names(each.link for each in own), sum(each.rejected for each in own)
    if len(names) != 1 or returned < max(view.limits(origin).queues.loss_least, _ALL * whole.rejected):
        return None
    sent = sum(each.sent for each in own)
    facts: dict[str, Fact] = {"client": names[0], "returned": returned, "sent": sent, "seconds": whole.seconds}
    return _Returning(tuple(each.link for each in own), facts)


def _recent(view: View, origin: Queue, seconds: float) -> Series[Queue]:
    return last(view.history(origin), max(seconds, view.thresholds.interval))


def _missing(view: View, origin: Queue, seconds: float) -> int:
    whole = balance(_recent(view, origin, seconds))
    return whole.missing if whole is not None else 0


def _reason(view: View, origin: Queue, seconds: float) -> dict[str, Fact] | None:
    """Return why a queue dead-letters, with the messages and deliveries that show it; None if it did not."""
    recent = _recent(view, origin, seconds)
    whole = balance(recent)
    if whole is None or whole.missing <= 0:
        return None
    length = origin.setting("max-length")
    messages = whole.missing
    redelivered, limit = delta(recent, "redeliver"), delivery_limit(origin, view.version)
    if isinstance(length, int) and (origin.messages_ready or 0) >= view.limits(origin).queues.full_share * length:
        reason = "length_limit"
    elif whole.rejected >= whole.missing * 0.5:
        reason = _settled(view, origin, messages, redelivered, limit)
        ttl = time_to_live(origin)
        returned = expired_returns(view, origin, recent, whole.rejected) if ttl is not None else None
        if returned is not None:
            reason = "returned" if returned.only else "rejected_or_returned"
    elif origin.setting("message-ttl") is not None:
        reason, messages = "expired", whole.lost
    else:
        reason = "rejected_or_expired"
    return {
        "reason": reason,
        "queue": queue_facts(origin),
        "messages": messages,
        "seconds": whole.seconds,
        "delivered": delta(recent, "deliver", "get"),
        "redelivered": redelivered,
        "delivery_limit": limit,
        "others_returned": reason == "delivery_limit" and redelivered >= _BEYOND * (limit or 0) * messages,
    }


def _settled(view: View, origin: Queue, messages: int, redelivered: int, limit: int | None) -> str:
    """Return how consumers made dead letters: they rejected messages, or returned them up to the delivery limit."""
    if not redelivered or origin.type != "quorum":
        return "rejected"
    # What comes back as a dead letter counts as redelivered from 4.0 on.
    if limit is None or dead_letters_from(view, origin):
        return "rejected_or_delivery_limit"
    over = at_limit(messages, redelivered, limit)
    if over >= messages:
        return "delivery_limit"
    return "rejected_or_delivery_limit" if over else "rejected"
