"""connection-churn (X01): an application connects, disconnects and connects again, without end.

Each time costs a TCP and perhaps a TLS handshake, a login, processes and file handles on the broker. Ratios to the
number of open connections hide the commonest case, which has two or three open at any moment.
Source: https://www.rabbitmq.com/docs/connections#high-connection-churn
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.closing import Closing, closings
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.loop_report import doing, evidence, pace, who
from diagnosis.turnover import Turnover, turnover
from diagnosis.words import lasting

NAME = "connection-churn"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every application whose connections come and go; the cluster where none of them is ever listed."""
    limits = view.thresholds.clients
    known = [closing for closing in closings(view) if closing.whole]
    for closing in known:
        if closing.lasts >= view.thresholds.early and closing.rate >= limits.connection_churn_slow:
            yield _of_client(view, closing)
    total = turnover(view, "connection")
    if known or total is None:
        return
    if total.lasts >= view.thresholds.early and total.rate >= limits.connection_churn_fast:
        yield _of_cluster(view, total)


def _severity(view: View, rate: float, lasts: float) -> tuple[Severity, str]:
    """How urgent it is, and what makes it more."""
    limits = view.thresholds.clients
    there = max((view.overview.connections if view.overview else None) or 1, 1)
    if rate < limits.connection_churn_fast or rate / there < limits.connection_churn_share:
        return Severity.INFO, f"; a waste, and a warning from {limits.connection_churn_fast:.0f} a second on"
    if lasts < limits.connection_churn_for:
        return Severity.INFO, f"; a deployment looks the same; warning after {lasting(limits.connection_churn_for)}"
    return Severity.WARNING, ""


def _steps(view: View, name: str) -> tuple[str, ...]:
    node = next((node.name for node in view.nodes if node.running), "a node")
    return (
        f"see whose they are, on {node}: grep -h 'granted access to vhost' /var/log/rabbitmq/*.log | tail -5",
        "see why they end: grep -h -A3 'closing AMQP connection' /var/log/rabbitmq/*.log | tail -8",
        f"read the log of {name}: an exception that ends its connection, or a new connection for each message?",
        "mend it: one long-lived connection a process; where the language cannot (PHP, CGI), put a proxy between",
    )


def _of_client(view: View, closing: Closing) -> FindingReport:
    severity, later = _severity(view, closing.rate, closing.lasts)
    does = doing(closing)
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=closing.subject,
        since=closing.since.iso(),
        summary=(
            f"{who(closing)} connects again and again, {pace(closing.rate)}, for {lasting(closing.lasts)}, "
            f"and keeps no connection open{later}"
        ),
        cause=(
            "The client opens a connection for each piece of work, or an error ends it and it begins anew"
            + (f"; each time it {does}" if does else "")
            + "."
        ),
        evidence=tuple(evidence(closing, "connection")),
        next_steps=_steps(view, repr(closing.client)),
        runbook=runbook(NAME),
    )


def _of_cluster(view: View, total: Turnover) -> FindingReport:
    severity, later = _severity(view, total.rate, total.lasts)
    there = view.overview.connections if view.overview else None
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=total.since.iso(),
        summary=f"connections open and close, {pace(total.rate)}, for {lasting(total.lasts)}{later}",
        cause="Some client connects for a moment only, too short to be listed: whose they are is in the broker's log.",
        evidence=(
            EvidenceReport(
                what="connections opened and closed",
                value=f"{pace(total.rate)}, for {lasting(total.lasts)}",
                expected="kept open",
                source="/api/overview churn_rates.connection_created, connection_closed",
            ),
            EvidenceReport(
                what="connections open",
                value="not told" if there is None else f"{there}",
                source="/api/overview object_totals.connections",
            ),
        ),
        next_steps=_steps(view, "the application that the log names"),
        runbook=runbook(NAME),
    )
