"""pub-blocked-by-alarm (A05): connections that a resource alarm blocks: the broker no longer reads from them.

Their publishes stay in the socket; the client library receives connection.blocked with the reason.
Source: https://www.rabbitmq.com/docs/alarms, https://www.rabbitmq.com/docs/connection-blocked
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, source
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.publishers._shared.native_publishers import SESSIONS, is_native, stopped_by_alarm
from diagnosis.rules.publishers._shared.publishers import BLOCKED

NAME = "pub-blocked-by-alarm"

# State of a connection that has not published since the alarm; the broker reads from it until it publishes.
_BLOCKING = "blocking"
# Seconds that the state of a connection may be old: the broker refreshes it every 5 s, and it is polled every 5 s.
_MAX_LAG_SECONDS = 15.0


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster: an alarm on one node blocks the publishers of all nodes."""
    stopped = stopped_by_alarm(view)
    blocked = [each for each in view.connections if each.state == BLOCKED or each.name in stopped]
    if not blocked:
        return
    check = view.alarm_check
    if check is not None and check.ok and (_just_over(view) or not all(_stays_blocked(view, each) for each in blocked)):
        # The alarm is over; the state of a connection is seconds old.
        return
    yield _finding(view, sorted(blocked, key=lambda each: each.name))


def blocked_since(view: View, names: Iterable[str] | None = None) -> str | None:
    """Return the time since which a connection (of these names, or any) has been blocked in consecutive readings."""
    only, first = None if names is None else set(names), None
    for seen in reversed(view.window.readings("connections")):
        if not any(each.state == BLOCKED and (only is None or each.name in only) for each in seen.value):
            break
        first = seen.at.iso()
    return first


def _just_over(view: View) -> bool:
    """Return whether an alarm was in force a few seconds ago."""
    alarmed = (
        seen.at
        for seen in reversed(view.window.readings("health"))
        if any(check.name == "alarms" and check.ok is False for check in seen.value)
    )
    latest = next(alarmed, None)
    return latest is not None and view.now.since(latest) < _MAX_LAG_SECONDS


def _stays_blocked(view: View, connection: Connection) -> bool:
    recent = view.connection_history(connection.name)[-3:]
    return len(recent) == 3 and all(seen.value.state == BLOCKED for seen in recent)


def _finding(view: View, blocked: list[Connection]) -> Finding:
    alarms = [f"{alarm.resource} on {alarm.node}" for alarm in view.alarms]
    evidence = [
        Evidence(
            key="window" if is_native(each) else "connection",
            value=0 if is_native(each) else each.state,
            source=source(SESSIONS, "incoming_window") if is_native(each) else source("/api/connections", "state"),
            facts={"client": client_name(each), "connection": each.name},
        )
        for each in blocked[:5]
    ]
    if alarms:
        evidence.append(Evidence(key="alarms", source=source("/api/health/checks/alarms")))
    nodes = tuple(sorted({alarm.node for alarm in view.alarms}))
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=blocked_since(view),
        facts={
            "blocked": len(blocked),
            "clients": sorted({client_name(each) or each.name for each in blocked}),
            "blocking": sum(connection.state == _BLOCKING for connection in view.connections),
            "alarms": alarms,
        },
        evidence=tuple(evidence),
        involved=replace(involved_connections(blocked), nodes=nodes),
        certainty=Certainty.CERTAIN,
    )
