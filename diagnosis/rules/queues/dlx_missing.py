"""dlx-missing (C06): dead letters have nowhere to go, and are dropped without a word.

The broker declares a queue whose dead-letter exchange does not exist, and drops what it cannot route there. A quorum
queue that dead-letters at least once keeps them instead, neither ready nor unacknowledged, until there is a way.
Source: https://www.rabbitmq.com/docs/dlx#routing, https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from ackscope.clock import Instant
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.routes import targets
from diagnosis.rules.queues.balance import balance
from diagnosis.series import last, span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, some

NAME = "dlx-missing"

Exchange = tuple[str, str]
"""Virtual host and name."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A queue whose dead letters go nowhere.

    Attributes:
        key: the routing key that they are sent with; None where it is their own.
        dropped: dead letters that vanished lately, at least.
        waiting: dead letters that the queue keeps because it must not lose them.
        waited: seconds that some were kept.
        seen: seconds that it was seen with this setting.
        since: of that.
    """

    queue: Queue
    key: str | None
    dropped: int
    waiting: int
    waited: float
    seen: float
    since: str


def evaluate(view: View) -> Iterator[RuleResult]:
    """Check the way of every queue's dead letters; one finding an exchange."""
    exists = {exchange.key for exchange in view.exchanges}
    found: dict[Exchange, list[Lost]] = {}
    untold = []
    for queue in view.queues:
        name = queue.setting("dead-letter-exchange")
        if not isinstance(name, str) or queue.type == "stream":
            continue
        key = queue.setting("dead-letter-routing-key")
        key = key if isinstance(key, str) else None
        if name == "" and key is None:
            continue
        reached = targets(view, queue.vhost, name, key)
        if reached is None and name and (queue.vhost, name) in exists:
            untold.append(queue.name)
        elif not reached and (reached is not None or name):
            named = stretch(view.history(queue), _same_way)
            if _read_since(view, named[0].at, "bindings" if (queue.vhost, name) in exists else "exchanges"):
                found.setdefault((queue.vhost, name), []).append(_lost(view, queue, key, named))
    for (vhost, name), lost in sorted(found.items()):
        answer = _finding(view, (vhost, name), lost, exists=name == "" or (vhost, name) in exists)
        if answer is not None:
            yield answer
    if untold and view.bindings is None:
        yield InconclusiveReport(
            rule=NAME,
            because=f"bindings were not read, so where {amount(len(untold), 'queue')} dead-letter to is not known: "
            f"{some(sorted(untold))}",
            needs="make /api/bindings answer, or wait; of more than 20,000 bindings only the number is held",
        )


def _same_way(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    names = ("dead-letter-exchange", "dead-letter-routing-key")
    return all(older.value.setting(name) == newer.value.setting(name) for name in names)


def _read_since(view: View, moment: Instant, family: str) -> bool:
    """Whether exchanges or bindings were read after the queue came to be: they are read less often than queues."""
    age = view.age(family)
    if moment == view.window.readings("queues")[0].at:
        return True
    return age is not None and view.now.since(moment) >= age


def _lost(view: View, queue: Queue, key: str | None, named: Series[Queue]) -> Lost:
    history = view.history(queue)
    lately = last(history, 2 * view.thresholds.interval)
    whole = balance(lately)
    # Rejected ones are dead letters too: here the balance gives nothing away but what the figures lag.
    lag = 0.0
    if whole is not None and whole.seconds > 0:
        lag = max(view.limits(queue).queues.loss_skew * whole.published / whole.seconds, 2.0)
    gone = whole.missing if whole is not None and whole.missing > lag else 0
    waits = stretch(history, _both_wait)
    return Lost(
        queue=queue,
        key=key,
        dropped=gone,
        waiting=queue.messages_dlx or 0,
        waited=span(waits) if queue.messages_dlx else 0.0,
        seen=span(named),
        since=named[0].at.iso(),
    )


def _both_wait(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return bool(older.value.messages_dlx and newer.value.messages_dlx)


def _finding(view: View, exchange: Exchange, lost: list[Lost], *, exists: bool) -> FindingReport | None:
    limits = view.thresholds.queues
    seen = max(each.seen for each in lost)
    dropped, waiting = sum(each.dropped for each in lost), sum(each.waiting for each in lost)
    if seen < view.thresholds.early:
        return None
    waited = max(each.waited for each in lost)
    if dropped or waited >= limits.dlx_waiting_for:
        severity = Severity.CRITICAL if seen >= limits.dlx_for else Severity.WARNING
    else:
        severity = Severity.WARNING if seen >= limits.dlx_for else Severity.INFO
    (vhost, name), first = exchange, lost[0]
    queues = some(repr(each.queue.name) for each in lost)
    what = f"Dead letters of {amount(len(lost), 'queue')} in vhost {vhost!r} ({queues}) have nowhere to go"
    if dropped:
        told = f"{amount(dropped, 'message')} dropped without a word in {lasting(2 * view.thresholds.interval)}"
    elif waiting:
        told = f"{amount(waiting, 'message')} kept back until there is a way, for {lasting(waited)}"
    else:
        told = "the next message that is rejected, expires or does not fit is lost without a word"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="exchange", name=name, vhost=vhost),
        since=min(each.since for each in lost),
        summary=f"{what}: {told}",
        cause=_cause(name, first, exists=exists),
        evidence=_evidence(name, lost, dropped, waiting, exists=exists),
        next_steps=_steps(exchange, first, exists=exists),
        runbook=runbook(NAME),
    )


def _cause(name: str, first: Lost, *, exists: bool) -> str:
    if name == "":
        return f"They are sent to a queue {first.key!r} by the default exchange, and there is no such queue."
    if not exists:
        return (
            f"Their dead-letter exchange {name!r} does not exist; the broker lets a queue name one that is not there."
        )
    if first.key is None:
        return f"Their dead-letter exchange {name!r} exists and has no binding that leads to a queue."
    return f"Their dead-letter exchange {name!r} exists and no binding of it takes the routing key {first.key!r}."


def _key(each: Lost) -> str:
    return "each message with the routing key it had" if each.key is None else f"routing key {each.key!r}"


def _evidence(name: str, lost: list[Lost], dropped: int, waiting: int, *, exists: bool) -> tuple[EvidenceReport, ...]:
    items = [
        EvidenceReport(
            what=f"dead-letter exchange {name!r}",
            value="exists, routes to no queue" if exists else "does not exist",
            expected="exists, and routes to a queue",
            source="/api/exchanges, /api/bindings",
        ),
        EvidenceReport(
            what="queues that name it",
            value=some(f"{each.queue.name!r} ({_key(each)})" for each in lost),
            source="/api/queues arguments, effective_policy_definition",
        ),
    ]
    if dropped:
        items.append(
            EvidenceReport(
                what="left these queues, and neither acknowledged nor stored",
                value=amount(dropped, "message"),
                expected="0",
                source="/api/queues message_stats.publish, ack, messages",
            )
        )
    if waiting:
        items.append(
            EvidenceReport(
                what="kept back", value=amount(waiting, "message"), expected="0", source="/api/queues messages_dlx"
            )
        )
    return tuple(items)


def _steps(exchange: Exchange, first: Lost, *, exists: bool) -> tuple[str, ...]:
    vhost, name = exchange
    where = f"rabbitmqadmin --vhost={quote(vhost)}"
    store = first.key if name == "" and first.key else f"{name or first.queue.name}.dead"
    steps = [f"make a queue that keeps them: {where} declare queue name={quote(store)} durable=true"]
    if name:
        key = f" routing_key={quote(first.key)}" if first.key else ""
        if not exists:
            kind = "direct" if first.key else "fanout"
            steps.append(f"make the exchange: {where} declare exchange name={quote(name)} type={kind} durable=true")
        steps.append(f"bind it: {where} declare binding source={quote(name)} destination={quote(store)}{key}")
    named = f"rabbitmqctl list_queues -p {quote(vhost)} name arguments policy effective_policy_definition"
    return (
        *steps,
        f"or is the name wrong? see who says it: {named}",
        "what was dropped is gone: find it at its publishers, or in the logs of the consumers that rejected it",
    )
