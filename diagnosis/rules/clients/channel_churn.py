"""channel-churn (X02): a connection stays, and its channels open and close in a loop.

Either the client does it, a channel for each message, which costs both sides much for nothing; or the broker closes
each channel with an error and the client tries again. Which error that is has rules of its own (a missing exchange, a
refused permission, an unknown delivery tag, a declaration that differs): this one is what is left.
Source: https://www.rabbitmq.com/docs/channels#high-channel-churn
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import FindingReport, runbook
from diagnosis.closing import Closing, closings
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.loop_report import doing, evidence, pace, read_log, who
from diagnosis.thresholds.clients import ClientThresholds
from diagnosis.words import close_connection, lasting

NAME = "channel-churn"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection whose channels come and go."""
    limits = view.thresholds.clients
    for closing in closings(view):
        if closing.whole or closing.lasts < view.thresholds.early:
            continue
        if closing.by_broker is not True and closing.rate < limits.channel_churn_slow:
            continue
        yield _finding(closing, limits)


def _severity(closing: Closing, limits: ClientThresholds) -> tuple[Severity, str]:
    """How urgent it is, and what makes it more."""
    if closing.by_broker:
        if closing.lasts >= limits.refused_for:
            return Severity.WARNING, ""
        return (
            Severity.INFO,
            f"; a start in the wrong order looks the same; warning after {lasting(limits.refused_for)}",
        )
    if closing.rate >= limits.channel_churn_fast:
        if closing.lasts >= limits.channel_churn_for:
            return Severity.WARNING, ""
        return Severity.INFO, f"; a burst looks the same; warning after {lasting(limits.channel_churn_for)}"
    return Severity.INFO, f"; a waste, and a warning from {limits.channel_churn_fast:.0f} a second on"


def _finding(closing: Closing, limits: ClientThresholds) -> FindingReport:
    severity, later = _severity(closing, limits)
    does = doing(closing)
    name = closing.connection.name
    if closing.by_broker:
        how = "the broker closes each of them with an error"
        cause = (
            "The broker refuses what each channel does and closes it; the client opens the next and tries again"
            + (f" (each of them {does})" if does else "")
            + ". What was in flight on the channel is lost with it."
        )
    elif closing.by_broker is False:
        how = "the client closes each of them itself"
        cause = "The client opens a channel for each operation" + (f": it {does}" if does else "") + "."
    else:
        how = "who closes them is not told"
        cause = (
            "The client opens a channel, uses it"
            + (f" (it {does})" if does else "")
            + (", and closes it or has it closed for an error.")
        )
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=closing.subject,
        since=closing.since.iso(),
        summary=(
            f"{who(closing)} opens and closes channels, {pace(closing.rate)}, for {lasting(closing.lasts)}: "
            f"{how}{later}"
        ),
        cause=cause,
        evidence=tuple(evidence(closing, "channel")),
        next_steps=(
            read_log(closing),
            "mend the client: keep one channel a thread open, and reopen it only after an error",
            f"if it eats the machine, close its connection: {close_connection(name, 'channel churn')[0]}",
        ),
        runbook=runbook(NAME),
    )
