"""pub-blocked-by-alarm (A05): who suffers from a resource alarm: connections that the broker no longer reads.

Their publishes wait in the socket; the client library gets connection.blocked with the reason.
Source: https://www.rabbitmq.com/docs/alarms, https://www.rabbitmq.com/docs/connection-blocked
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import HELD_BACK
from diagnosis.words import amount, client, some

NAME = "pub-blocked-by-alarm"

_NOT_YET = "blocking"
"""State of a connection that has not published since the alarm; it is read until it does."""
_BEHIND = 15.0
"""Seconds by which the state of a connection may be behind: the broker renews it every 5 s, and we look every 5 s."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for the cluster: an alarm on one node holds back the publishers of all."""
    held = [connection for connection in view.connections if connection.state == HELD_BACK]
    if not held:
        return
    check = view.alarm_check
    if check is not None and check.ok and (_just_over(view) or not all(_was_held(view, each) for each in held)):
        # The alarm is over; the state of a connection is seconds behind.
        return
    yield _finding(view, sorted(held, key=lambda each: each.name))


def _just_over(view: View) -> bool:
    """Whether an alarm was in force within the last seconds."""
    told = (
        seen.at
        for seen in reversed(view.window.readings("health"))
        if any(check.name == "alarms" and check.ok is False for check in seen.value)
    )
    latest = next(told, None)
    return latest is not None and view.now.since(latest) < _BEHIND


def _was_held(view: View, connection: Connection) -> bool:
    lately = view.connection_history(connection.name)[-3:]
    return len(lately) == 3 and all(seen.value.state == HELD_BACK for seen in lately)


def _finding(view: View, held: list[Connection]) -> FindingReport:
    names = sorted({client(each, each.name) for each in held})
    waiting = sum(connection.state == _NOT_YET for connection in view.connections)
    alarms = some(f"{alarm.resource} on {alarm.node}" for alarm in view.alarms)
    verb = "is" if len(held) == 1 else "are"
    more = f"; {waiting} more will be with their next publish" if waiting else ""
    told = f"Alarm: {alarms}" if alarms else "A resource alarm, by the state of the connections"
    evidence = [
        EvidenceReport(
            what=f"connection of {client(each, each.name)!r}",
            value=f"blocked: {each.name}",
            expected="running",
            source="/api/connections state",
        )
        for each in held[:5]
    ]
    if alarms:
        evidence.append(
            EvidenceReport(what="alarms in force", value=alarms, expected="none", source="/api/health/checks/alarms")
        )
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=_since(view),
        summary=f"{amount(len(held), 'connection')} {verb} held back: {some(map(repr, names), 5)}{more}",
        cause=(
            f"{told}. The broker reads nothing more from a connection that publishes until every alarm is over; "
            "what was sent waits, and is not lost while the client keeps it."
        ),
        evidence=tuple(evidence),
        next_steps=(
            "end the alarm: rabbitmq-diagnostics check_alarms names node and resource",
            "tell these applications: they should pause at connection.blocked, and not time out, reconnect and resend",
            "see who is held back: rabbitmqctl list_connections name user state client_properties | grep -w blocked",
        ),
        runbook=runbook(NAME),
    )


def _since(view: View) -> str | None:
    """The first of the latest readings in a row in which a connection was held back."""
    first = None
    for seen in reversed(view.window.readings("connections")):
        if not any(each.state == HELD_BACK for each in seen.value):
            break
        first = seen.at.iso()
    return first
