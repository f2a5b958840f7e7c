"""consumer-without-credit: consumers attached over AMQP 1.0 ask for no message, so a backlog is not delivered."""

from collections.abc import Iterator

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.sessions import arrivals, session_evidence, unreported
from diagnosis.rules.consumers._shared.unattributed_consumers import Judgement, Standing, judgement
from diagnosis.series import delta, last, span, stretch
from diagnosis.unattributed import names, suspect_evidence, suspect_facts, with_suspects
from diagnosis.window import Series, Timestamped

NAME = "consumer-without-credit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with messages ready all of whose consumers use AMQP 1.0."""
    yield from unreported(view, NAME, lambda queue: may_wait(view, queue))
    for queue in view.uncounted_queues:
        judged = judgement(view, queue)
        if judged is not None and judged.standing is Standing.NO_CREDIT:
            yield _of_unattributed(view, judged)
        links = tuple(link for link in view.links(queue) if link.consumer.active is not False)
        if not queue.messages_ready or queue.type == "stream" or not all(link.session for link in links):
            continue
        waiting = stretch(view.history(queue), _ready_stays)
        seen = min((span(_asks_for_nothing(view, link)) for link in links), default=0.0)
        seen = min(seen, span(waiting))
        if links and seen >= view.limits(queue).early:
            yield _finding(view, queue, links, waiting, seen)


def may_wait(view: View, queue: Queue) -> bool:
    """Return whether messages wait in a queue and none is held, and its unattributed consumers could not be judged."""
    return bool(queue.messages_ready) and not queue.messages_unacked and judgement(view, queue) is None


def _of_unattributed(view: View, judged: Judgement) -> Finding:
    """Return the finding about consumers without a reported session: at no reading did they hold a message."""
    queue, found = judged.of.queue, judged.of
    need, arrived = view.limits(queue).consumers.no_credit_for, arrivals(judged.tail)
    early = judged.held_seconds < need
    severity = Severity.CRITICAL if arrived else Severity.WARNING
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else severity,
        subject=queue_subject(queue),
        since=judged.tail[0].at.iso(),
        facts={
            **_facts(view, queue, found.links, arrived, judged.held_seconds),
            "delivered": None,
            "clients": names(found.suspects),
            "suspects": suspect_facts(found.suspects),
        },
        evidence=(_waiting(queue), *suspect_evidence(found.suspects)),
        involved=with_suspects(involved_consumers((queue,), found.links), found.suspects),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=span(judged.tail),
    )


def _facts(
    view: View, queue: Queue, links: tuple[ConsumerPath, ...], arrived: int, waiting_seconds: float
) -> dict[str, Fact]:
    return {
        "queue": queue_facts(queue),
        "consumers": len(links),
        "ready": queue.messages_ready or 0,
        "arrived": arrived,
        "waiting_seconds": waiting_seconds,
        "warning_after_seconds": view.limits(queue).consumers.no_credit_for,
        "first_consumer": process_facts(links[0]),
    }


def _waiting(queue: Queue) -> Evidence:
    return Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready", "messages"),
    )


def _ready_stays(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return 0 < (older.value.messages_ready or 0) <= (newer.value.messages_ready or 0)


def _link(session: AmqpSession, link: ConsumerPath) -> AmqpLink | None:
    found = (each for each in session.consuming if str(each.handle) == link.consumer.tag)
    return next((each for each in found if each.name == link.consumer.link_name), None)


def _asks_for_nothing(view: View, link: ConsumerPath) -> Series[AmqpSession]:
    """Return the readings in which a link had no credit, its session held nothing, and nothing was sent on it."""
    if link.session is None or not _is_idle(link.session, link):
        return ()

    def stays(older: Timestamped[AmqpSession], newer: Timestamped[AmqpSession]) -> bool:
        before, after = _link(older.value, link), _link(newer.value, link)
        same = before is not None and after is not None and before.delivery_count == after.delivery_count
        return same and _is_idle(older.value, link)

    return stretch(view.session_history(link.session), stays)


def _is_idle(session: AmqpSession, link: ConsumerPath) -> bool:
    own = _link(session, link)
    return own is not None and own.credit == 0 and session.unsettled == 0


def _finding(view: View, queue: Queue, links: tuple[ConsumerPath, ...], waiting: Series[Queue], seen: float) -> Finding:
    need = view.limits(queue).consumers.no_credit_for
    during = last(waiting, seen)
    arrived = arrivals(during)
    sent = sum(own.delivery_count or 0 for link in links if link.session and (own := _link(link.session, link)))
    lasted = max(seen, _untouched(view, queue, links) if sent else _piled_up(view, queue, links, during))
    early = lasted < need
    severity = Severity.CRITICAL if arrived else Severity.WARNING
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else severity,
        subject=queue_subject(queue),
        since=during[0].at.iso(),
        facts={
            **_facts(view, queue, links, arrived, lasted),
            "delivered": sent,
            "clients": client_names(links),
            "suspects": [],
        },
        evidence=(
            _waiting(queue),
            *(session_evidence(link) for link in links[:5]),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=seen,
    )


def _untouched(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> float:
    """Return for how long nothing was held and as many messages were ready more as were published; 0 if not counted."""
    history = tuple(seen for seen in view.history(queue) if seen.value.messages_ready is not None)
    if not history or not history[-1].value.stats.publish:
        return 0.0
    end, slack = history[-1], view.limits(queue).queues.loss_skew

    def stays(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        published = delta((older, end), "publish")
        came = (end.value.messages_ready or 0) - (older.value.messages_ready or 0)
        unsure = max(1.0, slack * published / max(slack, end.at.since(older.at)))
        return not older.value.messages_unacked and _ready_stays(older, newer) and abs(came - published) <= unsure

    ages = [age_seconds(view, link.connection) for link in links]
    return min(span(stretch(history, stays)), *ages)


def _piled_up(view: View, queue: Queue, links: tuple[ConsumerPath, ...], during: Series[Queue]) -> float:
    """Return for how long consumers that never took a message have asked for none, by the backlog behind them."""
    arrived = arrivals(during)
    ages = [age_seconds(view, link.connection) for link in links]
    return min((queue.messages_ready or 0) * span(during) / arrived, *ages) if arrived else 0.0
