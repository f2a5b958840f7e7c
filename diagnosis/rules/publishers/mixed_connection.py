"""mixed-connection (A13): one connection publishes and consumes, so an alarm stops its consumers too.

Under an alarm the broker does not read from a connection that published: acknowledgements stay in the socket with the
publishes. The consumers cannot drain the queues that caused the alarm: a deadlock. Seen on 3.10.8, 4.0.5 and 4.3.6.
Source: https://www.rabbitmq.com/docs/alarms#effects-on-clusters
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, source
from ackscope.snapshot import Channel, Connection
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.publishers._shared.publishers import BLOCKED, publishers
from diagnosis.rules.publishers.pub_blocked_by_alarm import blocked_since

NAME = "mixed-connection"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding per virtual host: critical if such a connection is blocked, otherwise a risk."""
    consuming: dict[str, list[Channel]] = {}
    for channel in view.channels:
        if channel.connection_name and (channel.consumer_count or channel.messages_unacked):
            consuming.setdefault(channel.connection_name, []).append(channel)
    if not consuming:
        return
    publishing = {each.channel.connection_name for each in publishers(view)}
    blocked: dict[str, list[Connection]] = {}
    mixed: dict[str, list[Connection]] = {}
    for connection in sorted(view.connections, key=lambda each: each.name):
        if connection.name not in consuming:
            continue
        if connection.state == BLOCKED:
            blocked.setdefault(connection.vhost or "/", []).append(connection)
        elif connection.name in publishing:
            mixed.setdefault(connection.vhost or "/", []).append(connection)
    for vhost in sorted({*blocked, *mixed}):
        if vhost in blocked:
            since = blocked_since(view, [each.name for each in blocked[vhost]])
            yield _finding(Severity.CRITICAL, since, vhost, blocked[vhost], consuming)
        else:
            yield _finding(Severity.INFO, None, vhost, mixed[vhost], consuming)


def _queues_of_blocked(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the queues from which the blocked connections consume; a mere risk explains nothing."""
    if finding.severity is not Severity.CRITICAL:
        return ()
    blocked = {each.name for each in view.connections if each.state == BLOCKED and each.vhost == finding.subject.name}
    return tuple((each.vhost, each.queue) for each in view.every_consumer if each.connection_name in blocked)


def _queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_OF_BLOCKED_CONNECTIONS = Relation(_queues_of_blocked, _queue)
"""The cause blocks connections; the consequence is about a queue from which they consume."""


def _finding(
    severity: Severity,
    since: str | None,
    vhost: str,
    connections: list[Connection],
    consuming: dict[str, list[Channel]],
) -> Finding:
    channels = [channel for each in connections for channel in consuming[each.name]]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="vhost", name=vhost),
        since=since,
        facts={
            "connections": len(connections),
            "clients": sorted({client_name(each) or each.name for each in connections}),
        },
        evidence=tuple(_evidence(connections, consuming)),
        involved=involved_connections(connections, (channel.name for channel in channels)),
        certainty=Certainty.CERTAIN,
    )


def _evidence(connections: list[Connection], consuming: dict[str, list[Channel]]) -> Iterator[Evidence]:
    for each in connections[:5]:
        yield Evidence(
            key="connection",
            value=each.state,
            source=source("/api/connections", "state")
            + source("/api/channels", "consumer_count", "messages_unacknowledged", "message_stats.publish"),
            facts={
                "client": client_name(each),
                "connection": each.name,
                "consumers": sum(channel.consumer_count or 0 for channel in consuming[each.name]),
                "unacked": sum(channel.messages_unacked or 0 for channel in consuming[each.name]),
            },
        )
