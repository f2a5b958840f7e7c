"""How unroutable messages are told: what vanishes where, since when, who sends it, and how to bind it again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from urllib.parse import quote as in_url

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import Publisher, listed, named, pace
from diagnosis.rules.publishers.unroutable import (
    DELAYED,
    DROPPED,
    Lossy,
    Routes,
    Senders,
    by_design,
    came,
    senders,
    went,
)
from diagnosis.series import span
from diagnosis.words import API, amount, lasting

_BY_SUBSCRIPTION = ("fanout", "topic", "headers")
"""Types of exchange to which nobody need subscribe; of the others each key is meant for somebody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the two rules.

    Attributes:
        counter: of channels.
        fate: what becomes of the messages.
        meaning: for the sender, in a sentence.
        worst: severity of an exchange that routes nothing any more.
        step: what the owner of the publisher does.
    """

    rule: str
    counter: str
    fate: str
    meaning: str
    worst: Severity
    step: str


def answers(view: View, kind: Kind) -> Iterator[RuleResult]:
    """One finding for each exchange; for each virtual host where the exchange cannot be told."""
    for group in senders(view, kind.counter):
        if group.pending:
            continue
        if not group.exchanges:
            yield _nameless(view, kind, group)
        for lossy in group.exchanges:
            benign = _benign(view, lossy)
            if benign:
                yield SuppressedReport(rule=kind.rule, subject=_subject(lossy), because=benign)
            else:
                yield _finding(view, kind, group, lossy)


def _benign(view: View, lossy: Lossy) -> str | None:
    if lossy.exchange.type == DELAYED:
        return "an exchange that delays messages counts them as dropped, and routes them later"
    if by_design(view, lossy.exchange):
        return "diagnosis.publishers.unroutable_by_design says that nobody need subscribe to it"
    return None


def severity_of(view: View, kind: Kind, lossy: Lossy) -> Severity:
    """How urgent, by what the exchange did before, its type, and how long it lasts."""
    limits, seconds = view.thresholds.publishers, span(lossy.lossy)
    open_to_all = lossy.exchange.type in _BY_SUBSCRIPTION
    if lossy.routes is Routes.NOTHING_NOW:
        if seconds < limits.unroutable_after:
            return Severity.INFO
        return Severity.WARNING if open_to_all else kind.worst
    tolerable = lossy.rate <= limits.unroutable_rate or lossy.vanished < limits.unroutable_share * lossy.received
    if seconds < limits.unroutable_long or tolerable:
        return Severity.INFO
    if open_to_all:
        # Events that nobody wants vanish all the time; only a change is worth waking somebody.
        return Severity.WARNING if lossy.before else Severity.INFO
    return Severity.WARNING


def _subject(lossy: Lossy) -> Subject:
    return Subject(kind="exchange", name=lossy.exchange.name, vhost=lossy.exchange.vhost)


def _finding(view: View, kind: Kind, group: Senders, lossy: Lossy) -> FindingReport:
    exchange, severity = lossy.exchange, severity_of(view, kind, lossy)
    name = f"exchange {exchange.name!r}" if exchange.name else "the default exchange"
    limits = view.thresholds.publishers
    share = "all" if went(lossy.lately) == 0 else f"{lossy.vanished} of {lossy.received}"
    maybe = ""
    if severity is Severity.INFO:
        after = limits.unroutable_after if lossy.routes is Routes.NOTHING_NOW else limits.unroutable_long
        by_subscription = exchange.type in _BY_SUBSCRIPTION and lossy.routes is not Routes.NOTHING_NOW
        maybe = (
            " (harmless if nobody need subscribe to it)"
            if by_subscription and not lossy.before
            else f" (a deployment that binds its queue anew looks the same; urgent after {lasting(after)})"
        )
    seconds = lasting(span(lossy.lossy))
    return FindingReport(
        rule=kind.rule,
        severity=severity,
        subject=_subject(lossy),
        since=lossy.lossy[0].at.iso(),
        summary=(
            f"{share[0].upper()}{share[1:]} messages to {name} ({exchange.vhost!r}) find no queue and are {kind.fate}: "
            f"{pace(lossy.rate)} from {named(group.publishers)}, for {seconds}{maybe}"
        ),
        cause=f"{_why(view, lossy)} {kind.meaning}",
        evidence=(*_of_exchange(lossy), *_of_publishers(kind, group.publishers)),
        next_steps=_steps(kind, lossy),
        runbook=runbook(kind.rule),
    )


def _why(view: View, lossy: Lossy) -> str:
    exchange = lossy.exchange
    if not exchange.name:
        return "The default exchange takes the routing key as the name of a queue, and there is no such queue."
    bound = None
    if view.bindings is not None:
        bound = sum(each.vhost == exchange.vhost and each.source == exchange.name for each in view.bindings)
    if bound == 0:
        return f"The {exchange.type} exchange has no binding{_once(lossy)}."
    have = "Its bindings" if bound is None else f"Its {amount(bound, 'binding')}"
    verb = "do" if bound != 1 else "does"
    what = "these routing keys" if exchange.type != "headers" else "these headers"
    return f"{have} {verb} not match {what}{_once(lossy)}: a binding is missing, or the publisher uses a wrong key."


def _once(lossy: Lossy) -> str:
    return ", although it routed messages before" if lossy.before or lossy.routes is Routes.NOTHING_NOW else ""


def _of_exchange(lossy: Lossy) -> tuple[EvidenceReport, ...]:
    return (
        EvidenceReport(
            what="published to the exchange",
            value=f"{amount(came(lossy.lately), 'message')} in {lasting(span(lossy.lately))}",
            source="/api/exchanges message_stats.publish_in",
        ),
        EvidenceReport(
            what="handed to queues",
            value=f"{amount(went(lossy.lately), 'message')} in {lasting(span(lossy.lately))}",
            expected="as many, or more where several queues are bound",
            source="/api/exchanges message_stats.publish_out",
        ),
    )


def _of_publishers(kind: Kind, publishers: tuple[Publisher, ...]) -> Iterator[EvidenceReport]:
    for each in sorted(publishers, key=lambda each: (-each.published, each.channel.name))[:3]:
        blind = "" if each.channel.confirm or kind.counter != DROPPED else ", without confirms"
        yield EvidenceReport(
            what=f"publisher {each.name!r}, user {each.channel.user or 'unknown'!r}, channel {each.channel.name!r}",
            value=f"{amount(each.published, 'message')} {kind.fate} in {lasting(each.seconds)}{blind}",
            expected="0",
            source=f"/api/channels message_stats.{kind.counter}",
        )


def _steps(kind: Kind, lossy: Lossy) -> tuple[str, ...]:
    exchange = lossy.exchange
    vhost = f"-p {quote(exchange.vhost)}"
    if not exchange.name:
        return (
            f"see which queue is missing: rabbitmqctl list_queues {vhost} name   # the publisher's key must be one",
            "declare the queue anew by starting the application that owns it, or mend the key in the publisher",
            kind.step,
        )
    columns = "source_name destination_name routing_key"
    where = f"{API}/api/bindings/{in_url(exchange.vhost, safe='')}/e/{in_url(exchange.name, safe='')}/q/QUEUE"
    document = '{"routing_key": "KEY"}'
    net = '{"alternate-exchange": "unrouted"}'
    policy = f"rabbitmqctl set_policy {vhost} unrouted {quote(f'^{re.escape(exchange.name)}$')} {quote(net)}"
    return (
        f"see what is bound: rabbitmqctl list_bindings {vhost} {columns} | grep -F -- {quote(exchange.name)}",
        f"bind it again: curl -u USER -X POST -H 'Content-Type: application/json' -d {quote(document)} {quote(where)}",
        f"catch what no binding takes: {policy} --apply-to exchanges   # declare exchange and queue unrouted first",
        kind.step,
    )


def _nameless(view: View, kind: Kind, group: Senders) -> FindingReport:
    """Who loses messages is known, where to is not."""
    seconds = max(each.seconds for each in group.publishers)
    rate = sum(each.rate for each in group.publishers)
    why = "the exchanges were not read" if not view.fresh("exchanges") else "several exchanges route what others lose"
    return FindingReport(
        rule=kind.rule,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=group.vhost),
        since=min(each.lately[0].at.iso() for each in group.publishers),
        summary=(
            f"{pace(rate)} published in vhost {group.vhost!r} find no queue and are {kind.fate}, "
            f"from {named(group.publishers)}, for {lasting(seconds)} or more; to which exchange cannot be told"
        ),
        cause=f"A binding is missing, or the publisher uses a wrong key or exchange ({why}). {kind.meaning}",
        evidence=tuple(_of_publishers(kind, group.publishers)),
        next_steps=(
            f"ask where it publishes to: {listed(group.publishers)}",
            f"compare with what is bound: rabbitmqctl list_bindings -p {quote(group.vhost)}",
            kind.step,
        ),
        runbook=runbook(kind.rule),
    )
