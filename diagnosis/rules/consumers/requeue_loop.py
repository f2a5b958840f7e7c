"""requeue-loop (B06): a consumer requeues messages, gets them again at once, and acknowledges next to nothing.

A consumer that reconnects after a restart causes redeliveries only once, so the share of redeliveries must be high in
several consecutive intervals. A few messages that never succeed may circulate among others that do: there the mean
number of redeliveries must be high for longer, on channels that stay open. Where some consumers requeue what others
then acknowledge, nothing circulates, and a good part of the deliveries is for nothing: a channel was sent more than it
acknowledged and holds. Some applications requeue by design. Where the baseline is known, a queue with more than three
times as many redeliveries as usual at this hour is reported as information, although most of its messages get through.
A shovel or federation link that requeues is link-target-refuses. Dead letters that come back may count as redelivered;
they are dead-letter-cycle.
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.baselines import Band
from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Source, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts
from diagnosis.rules.cluster._shared.link_flow import circulations
from diagnosis.rules.consumers._shared.by_totals import RETURNED_BY, none_returned, sole_history
from diagnosis.rules.consumers._shared.consumer_balances import consumer_balances
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.redelivery_rounds import (
    PARTLY,
    REFRESH_SECONDS,
    deliveries,
    only_polled,
    redelivered_in_between,
    redelivered_partly,
    redelivery_rounds,
)
from diagnosis.rules.consumers._shared.sessions import session_evidence, unreported
from diagnosis.rules.consumers._shared.unattributed_consumers import unattributed
from diagnosis.rules.publishers._shared.native_balance import BALANCED, arrivals_unknown, balance, with_returns
from diagnosis.rules.queues._shared.queue import queue_with_policy
from diagnosis.rules.queues.dead_letter_cycle import goes_round
from diagnosis.series import delta, span, steps, stretch
from diagnosis.unattributed import names, suspect_evidence, suspect_facts, with_suspects
from diagnosis.usual import SOURCE, band_facts, is_more, of_queue
from diagnosis.window import Series, Timestamped

NAME = "requeue-loop"

_BATCH_LEAST, _BATCH_SECONDS = 5, 2.0
"""Least messages that consumers hold, and least seconds for which they hold each, if they return whole batches."""

_ACKED_SHARE = 0.8
"""Share of the messages delivered for the first time that must be acknowledged, so that nothing circulates."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that redelivered recently."""
    yield from unreported(view, NAME, lambda queue: not none_returned(view, queue) and not _counted(view, queue))
    yield from arrivals_unknown(view, NAME, lambda queue: not none_returned(view, queue))
    yield from _returned(view)
    for queue in view.queues:
        if not queue.stats.redeliver or not view.moved(queue, "redeliver"):
            continue
        circulation = circulations(view).get(queue.key)
        if circulation is not None:
            facts: dict[str, Fact] = {"link": circulation.source.name, "kind": circulation.source.kind}
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="by_link", facts=facts)
            continue
        if goes_round(view, queue):
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="dead_letters")
            continue
        limits = view.limits(queue)
        history = view.history(queue)
        rounds = redelivery_rounds(view, history, limits.interval)
        if len(rounds) > limits.consumers.requeue_intervals and span(rounds) >= limits.consumers.requeue_for:
            yield _finding(view, queue, rounds)
            continue
        # Report it early only if every reading shows it: after a reconnect, all redeliveries come at once.
        early = redelivery_rounds(view, history, REFRESH_SECONDS)
        mixed = _mixed(view, queue)
        if span(early) >= limits.early:
            yield _finding(view, queue, early, early=True)
        elif mixed:
            yield _finding(view, queue, mixed, mixed=True)
        elif partly := _partly_requeued(view, queue):
            yield partly
        else:
            yield from _unusual(view, queue)


def _counted(view: View, queue: Queue) -> bool:
    """Return whether totals tell what the consumers of a queue returned, over a time in which a loop shows."""
    return span(sole_history(view, queue)) >= 2 * view.thresholds.interval


def _mixed(view: View, queue: Queue) -> Series[Queue]:
    """Return the readings in which a few messages circulated among others that were acknowledged; else empty.

    Messages of a consumer that dies are redelivered, too, but to another channel.
    """
    limits = view.limits(queue)
    rounds = redelivered_in_between(view, view.history(queue), limits.interval)
    if span(rounds) < limits.consumers.requeue_mixed_for:
        return ()
    begin = view.channels_before
    histories = [view.channel_history(link.channel.name) for link in view.links(queue) if link.channel is not None]
    lasting = [each for each in histories if begin is not None and each and each[0].at == begin]
    rate = sum(delta(each, "redeliver") / span(each) for each in lasting if span(each))
    return rounds if rate >= limits.consumers.requeue_share * delta(rounds, "redeliver") / span(rounds) else ()


def _partly_requeued(view: View, queue: Queue) -> Finding | None:
    """Return the finding about consumers that requeue a good part of what they were sent; None where others explain it.

    In the end each message is acknowledged, by another consumer or at another attempt. A client that disconnects
    returns messages, too, but its channel is gone then.
    """
    if (queue.consumers or 0) < 2:
        return None
    history, limits = view.history(queue), view.limits(queue)
    rounds = redelivered_partly(view, history, limits.interval)
    if span(rounds) < limits.consumers.requeue_mixed_for:
        return None
    first_deliveries = deliveries(rounds[-1].value) - deliveries(rounds[0].value) - delta(rounds, "redeliver")
    if delta(rounds, "ack") < _ACKED_SHARE * first_deliveries:
        return None
    found = [each for each in consumer_balances(view, queue) if each.rejected >= PARTLY * each.sent]
    found.sort(key=lambda each: -each.rejected)
    recent = tuple(seen for seen in history if seen.at.mono >= (view.channels_before or seen.at).mono)
    if sum(each.rejected for each in found) < 0.5 * delta(recent, "redeliver"):
        return None
    useless = [each for each in found if not each.acked]
    if not useless and len(found) < 2:
        return None
    links = [each.link for each in useless or found]
    finding = _finding(view, queue, rounds, mixed=True)
    return replace(
        finding,
        severity=Severity.WARNING if useless else Severity.INFO,
        facts=dict(finding.facts) | {"clients": client_names(links), "returned": "all" if useless else "part"},
        evidence=(
            *(each for each in finding.evidence if each.key != "consumer"),
            *(
                Evidence(
                    key="returned",
                    value=each.rejected,
                    unit=Unit.MESSAGES,
                    source=source("/api/channels", "message_stats.deliver", "message_stats.ack"),
                    facts={"sent": each.sent, "returned_by": consumer_facts(each.link)},
                )
                for each in found[:3]
            ),
        ),
        involved=involved_consumers((queue,), links),
    )


def _returned(view: View) -> Iterator[Finding]:
    """Judge every queue of AMQP 1.0 consumers, by the balance of what they were sent, settled and left, or totals."""
    for queue in view.uncounted_queues:
        if queue.stats.redeliver:
            continue
        if any(link.session for link in view.links(queue)):
            history = with_returns(balance(view, queue))
        elif unattributed(view, queue) is not None and not none_returned(view, queue):
            history = sole_history(view, queue)
        else:
            continue
        limits = view.limits(queue)
        # A message that a delivery limit drops has left the queue, too.
        rounds = redelivery_rounds(view, history, limits.interval)
        if span(rounds) >= limits.early:
            late = len(rounds) > limits.consumers.requeue_intervals and span(rounds) >= limits.consumers.requeue_for
            yield _finding(view, queue, rounds, early=not late)


def _unusual(view: View, queue: Queue) -> Iterator[Finding]:
    """Yield a finding about a queue that redelivers far more than usual; nothing without a baseline."""
    band = of_queue(view, queue, "redelivered")
    if not isinstance(band, Band):
        return
    limits = view.limits(queue)
    rounds = _above_usual(view, view.history(queue), limits.interval, band)
    if len(rounds) > limits.consumers.requeue_intervals and span(rounds) >= limits.consumers.requeue_for:
        yield _finding(view, queue, rounds, band=band)


def _above_usual(view: View, history: Series[Queue], seconds: float, band: Band) -> Series[Queue]:
    """Return the latest readings, at least `seconds` apart, with more redeliveries than usual between each pair."""
    found: list[Timestamped[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        rate = delta((older, newer), "redeliver") / newer.at.since(older.at)
        if rate <= view.limits(newer.value).consumers.requeue_rate or not is_more(view, rate, band):
            break
        found = [older, *(found or [newer])]
    return tuple(found)


def _finding(
    view: View,
    queue: Queue,
    rounds: Series[Queue],
    *,
    early: bool = False,
    mixed: bool = False,
    band: Band | None = None,
) -> Finding:
    """Return the finding about a loop or, given the exceeded baseline, about unusually many redeliveries."""
    limits, seconds = view.limits(queue).consumers, span(rounds)
    redelivered, acked = delta(rounds, "redeliver"), delta(rounds, "ack")
    requeuing = _requeuing(view, queue)
    native = [link for link in view.links(queue) if link.session]
    unlisted = unattributed(view, queue) if not queue.stats.redeliver else None
    suspects = unlisted.suspects if unlisted is not None else ()
    links = [link for link, _ in requeuing] or native or list(unlisted.links if unlisted is not None else ())
    counted = RETURNED_BY if suspects else BALANCED if native else None
    # Who looks at messages and puts them back does not stop the queue: no consumer is there that could go on.
    without_acks = stretch(rounds, lambda older, newer: not delta((older, newer), "ack"))
    stands_still = span(without_acks) >= min(seconds, limits.requeue_for)
    stopped = stands_still and delta(rounds[-2:], "publish") > 0 and not only_polled(rounds)
    severity = Severity.CRITICAL if stopped else Severity.WARNING
    usual: dict[str, Fact] | None = None if band is None else dict(band_facts(band, "redelivered"))
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early or band else severity,
        subject=queue_subject(queue),
        since=rounds[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "clients": names(suspects) if suspects else client_names(links),
            "redelivered": redelivered,
            "delivered": deliveries(rounds[-1].value) - deliveries(rounds[0].value),
            "redelivery_rate": redelivered / seconds,
            "acked": acked,
            "stopped_seconds": span(without_acks) if stopped else None,
            "ready": queue.messages_ready or 0,
            "unacked": queue.messages_unacked or 0,
            "mixed": mixed,
            "returned": None,
            "polled": only_polled(rounds),
            **_batch_facts(rounds),
            "mean": redelivered / max(1, acked + (queue.messages or 0)),
            "warning_after_seconds": limits.requeue_mixed_for if mixed else limits.requeue_for,
            "band_of": usual,
            "amqp10": bool(native or suspects),
            "suspects": suspect_facts(suspects),
        },
        evidence=(
            *_evidence(queue, redelivered / seconds, acked, requeuing, usual, counted=counted),
            *(session_evidence(link) for link in native[:3]),
            *suspect_evidence(suspects),
        ),
        involved=with_suspects(involved_consumers((queue,), links), suspects),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _batch_facts(rounds: Series[Queue]) -> dict[str, Fact]:
    """Return how many messages consumers hold and for how long, if they return whole batches; None where not.

    They acknowledge nothing and hold each message for seconds: a loop of single messages returns each at once.
    """
    held = max(seen.value.messages_unacked or 0 for seen in rounds)
    redelivered = delta(rounds, "redeliver")
    seconds = held * span(rounds) / redelivered if redelivered else 0.0
    batches = held >= _BATCH_LEAST and seconds >= _BATCH_SECONDS and not delta(rounds, "ack")
    return {"batch": held if batches else None, "batch_seconds": seconds if batches else None}


def _evidence(
    queue: Queue,
    rate: float,
    acked: int,
    requeuing: list[tuple[ConsumerPath, int]],
    usual: dict[str, Fact] | None,
    counted: Source | None,
) -> Iterator[Evidence]:
    yield Evidence(
        key="redelivered",
        value=rate,
        unit=Unit.PER_SECOND,
        source=(counted or source("/api/queues", "message_stats.redeliver", "message_stats.deliver_get"))
        + (SOURCE if usual else ()),
    )
    acks = counted or source("/api/queues", "message_stats.ack")
    yield Evidence(key="acked", value=acked, unit=Unit.MESSAGES, source=acks)
    if usual is not None:
        return
    yield Evidence(
        key="depth",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready", "messages_unacknowledged"),
    )
    for link, times in requeuing[:3]:
        yield Evidence(
            key="consumer",
            value=times,
            unit=Unit.MESSAGES,
            source=source("/api/consumers") + source("/api/channels", "message_stats.redeliver"),
            facts={"redelivered_to": consumer_facts(link)},
        )


def _requeuing(view: View, queue: Queue) -> list[tuple[ConsumerPath, int]]:
    """Return the consumers whose channel received redeliveries within the window, with their number, most first."""
    found = [
        (link, delta(view.channel_history(link.channel.name), "redeliver"))
        for link in view.links(queue)
        if link.channel is not None
    ]
    redelivered = [(link, times) for link, times in found if times > 0]
    return sorted(redelivered, key=lambda item: (-item[1], item[0].consumer.channel_name or "", item[0].consumer.tag))
