"""mixed-connection (A13): one connection publishes and consumes, so that an alarm stops its consumers too.

Under an alarm the broker does not read a connection that published: acknowledgements stay in the socket with the
publishes. The consumers cannot drain the queues that caused the alarm: a deadlock. Seen on 3.10.8, 4.0.5 and 4.3.6.
Source: https://www.rabbitmq.com/docs/alarms#effects-on-clusters
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel, Connection
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.rules.publishers.publishing import HELD_BACK, publishers
from diagnosis.words import amount, client, some

NAME = "mixed-connection"

_FOLLOWS = ("stuck-consumer", "slow-consumer", "no-consumer", "prefetch-too-small", "orphaned-unacked", "stale-head")


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: critical where such a connection is blocked, else the risk."""
    consuming: dict[str, list[Channel]] = {}
    for channel in view.channels:
        if channel.connection_name and (channel.consumer_count or channel.messages_unacked):
            consuming.setdefault(channel.connection_name, []).append(channel)
    if not consuming:
        return
    writing = {each.channel.connection_name for each in publishers(view)}
    blocked: dict[str, list[Connection]] = {}
    mixed: dict[str, list[Connection]] = {}
    for connection in sorted(view.connections, key=lambda each: each.name):
        if connection.name not in consuming:
            continue
        if connection.state == HELD_BACK:
            blocked.setdefault(connection.vhost or "/", []).append(connection)
        elif connection.name in writing:
            mixed.setdefault(connection.vhost or "/", []).append(connection)
    for vhost in sorted({*blocked, *mixed}):
        if vhost in blocked:
            yield _deadlock(view, vhost, blocked[vhost], consuming)
        else:
            yield _risk(vhost, mixed[vhost], consuming)


def _queues_of_blocked(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """What the connections consume from that are blocked now; a mere risk accounts for nothing."""
    if finding.severity is not Severity.CRITICAL:
        return ()
    held = {each.name for each in view.connections if each.state == HELD_BACK and each.vhost == finding.subject.name}
    return tuple((each.vhost, each.queue) for each in view.part("consumers") if each.connection_name in held)


def _queue(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_OF_BLOCKED_CONNECTIONS = Relation(_queues_of_blocked, _queue)
"""The cause blocks connections; what follows is about a queue that they consume from."""


def _deadlock(view: View, vhost: str, blocked: list[Connection], consuming: dict[str, list[Channel]]) -> FindingReport:
    names = some(sorted({repr(client(each, each.name)) for each in blocked}))
    # Above the default, which is 0.6 from 4.0 on and 0.4 before. Source: https://www.rabbitmq.com/docs/memory
    recent = view.version is not None and view.version >= (4, 0)
    raise_it = f"rabbitmqctl set_vm_memory_high_watermark {'0.7' if recent else '0.6'}"
    verb = "also consumes is" if len(blocked) == 1 else "also consume are"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="vhost", name=vhost),
        since=_since(view, {each.name for each in blocked}),
        summary=(
            f"{amount(len(blocked), 'connection')} in vhost {vhost!r} that {verb} blocked ({names}): "
            "their acknowledgements are not read, so their queues do not drain while the alarm lasts"
        ),
        cause=(
            "They publish and consume over one connection. Under an alarm the broker reads nothing from it, "
            "acknowledgements included; if their queues caused the alarm, it does not end by itself."
        ),
        evidence=_evidence(blocked, consuming),
        next_steps=(
            f"break the deadlock, where the machine has the memory: {raise_it}   # a disk alarm: free disk space",
            "or start more consumers that only consume: they are not held back",
            "when it is over, set the watermark back to what rabbitmq.conf says",
            "later: one connection for publishing and another for consuming, in each of these applications",
        ),
        runbook=runbook(NAME),
    )


def _risk(vhost: str, mixed: list[Connection], consuming: dict[str, list[Channel]]) -> FindingReport:
    names = some(sorted({repr(client(each, each.name)) for each in mixed}))
    verb = "publishes and consumes" if len(mixed) == 1 else "publish and consume"
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=None,
        summary=(
            f"{amount(len(mixed), 'connection')} in vhost {vhost!r} {verb} ({names}): "
            "a memory or disk alarm would stop their consumers as well"
        ),
        cause="The broker blocks whole connections: acknowledgements wait behind publishes that it does not read.",
        evidence=_evidence(mixed, consuming),
        next_steps=(
            "use one connection for publishing and another for consuming, in each of these applications",
            "see them: rabbitmqctl list_channels connection name consumer_count messages_unacknowledged",
        ),
        runbook=runbook(NAME),
    )


def _evidence(connections: list[Connection], consuming: dict[str, list[Channel]]) -> tuple[EvidenceReport, ...]:
    return tuple(
        EvidenceReport(
            what=f"connection {each.name!r} of {client(each, each.name)!r}",
            value=(
                f"{each.state or 'unknown'}, "
                f"{amount(sum(channel.consumer_count or 0 for channel in consuming[each.name]), 'consumer')}, "
                f"{sum(channel.messages_unacked or 0 for channel in consuming[each.name])} unacked, and it publishes"
            ),
            expected="publishing and consuming apart",
            source="/api/connections state; /api/channels consumer_count, messages_unacknowledged, publish",
        )
        for each in connections[:5]
    )


def _since(view: View, names: set[str]) -> str | None:
    """The first of the latest readings in a row in which one of them was blocked."""
    first = None
    for seen in reversed(view.window.readings("connections")):
        if not any(each.state == HELD_BACK and each.name in names for each in seen.value):
            break
        first = seen.at.iso()
    return first
