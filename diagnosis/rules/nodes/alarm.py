"""What the two resource alarms share: who told of them, since when, and who is held back.

The health check is the authority: `mem_alarm` of /api/nodes was still false 8 s after the alarm on 4.0.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.records import ProbeOutcome, ProbeState
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport
from ackscope.snapshot import Node
from diagnosis.contract import Explains, Relation, View
from diagnosis.relations import ANYWHERE, SAME_CONNECTION

BLOCKED = {"blocked", "blocking"}
"""Connection states under an alarm: has tried to publish, has not tried yet."""

FOLLOWS = (
    "pub-blocked-by-alarm",
    "pub-confirm-stall",
    "pub-credit-flow",
    "publisher-silent",
    "probe-path-slow",
    "slow-disk",
)
"""What is seen of publishers, and of probes, while the whole cluster is held back."""


def _of_alarm(view: View, _finding: FindingReport) -> Iterable[Hashable]:
    return ("blocked",) if any(each.state in BLOCKED for each in view.connections) else ()


def _of_consumers(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """Whether a connection that consumes from the queue is held back: then its acknowledgements are not read."""
    subject = finding.subject
    queue = view.queue(subject.vhost, subject.name) if subject.kind == "queue" else None
    links = view.links(queue) if queue else ()
    return ("blocked",) if any(link.connection and link.connection.state in BLOCKED for link in links) else ()


HELD_CONSUMERS = Relation(_of_alarm, _of_consumers)
"""Consumers of a queue are on connections that the alarm holds back."""

BLOCKED_CONNECTIONS = Relation(_of_alarm, lambda _view, _finding: ("blocked",))
"""The alarm blocks connections, and what follows is about connections that are blocked."""

EXPLAINS = (
    Explains(FOLLOWS, ANYWHERE),
    Explains(("mixed-connection",), BLOCKED_CONNECTIONS),
    Explains(("stuck-consumer", "slow-consumer", "orphaned-unacked", "queue-overload"), HELD_CONSUMERS),
    Explains(("heartbeat-loss",), SAME_CONNECTION),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One of the two, as the broker calls it.

    Attributes:
        rule: the rule that tells of its alarm.
        name: in the list of the health check.
        field: of /api/nodes that tells of it, late.
        in_alarm: the same, of a node.
        words: what connection.blocked says of it, alone and beside the other.
    """

    rule: str
    name: str
    field: str
    in_alarm: Callable[[Node], bool | None]
    words: tuple[str, ...]


def judge(
    view: View, resource: Resource, finding: Callable[[View, str | None, str], FindingReport]
) -> Iterator[FindingReport | InconclusiveReport]:
    """A finding for each node in alarm; one for the cluster where only a probe tells; what cannot be told else."""
    told = known(view)
    if told:
        sick, source = sick_nodes(view, resource.name), "/api/health/checks/alarms"
    else:
        sick, source = sorted(node.name for node in view.nodes if resource.in_alarm(node)), resource.field
    for node in sick:
        yield finding(view, node, source)
    if sick or told:
        return
    if any(held_probes(view, words) for words in resource.words):
        yield finding(view, None, "probe: connection.blocked")
    else:
        yield blind(resource.rule)


def known(view: View) -> bool:
    """Whether the health check answered so that it can be believed.

    One that fails without a list of alarms tells that something is wrong, and not what.
    """
    check = view.alarm_check
    return check is not None and (check.ok is True or bool(check.alarms))


def sick_nodes(view: View, resource: str) -> list[str]:
    """Nodes with this alarm, by the health check."""
    return sorted({alarm.node for alarm in view.alarms if alarm.resource == resource})


def held_probes(view: View, words: str) -> list[ProbeOutcome]:
    """Probes that the broker holds back with these words, in a fixed order."""
    held = (o for o in view.outcomes if o.state is ProbeState.BLOCKED and words in (o.reason or ""))
    return sorted(held, key=lambda outcome: (outcome.probe, outcome.stream))


def blind(rule: str) -> InconclusiveReport:
    """No health check, no node that tells, no probe that is held back."""
    return InconclusiveReport(
        rule=rule,
        because="the health check for alarms gave no answer, and /api/nodes tells of alarms too late to prove anything",
        needs="let the monitoring user reach /api/health/checks/alarms, or ask: rabbitmq-diagnostics check_alarms",
    )


def blocked_count(view: View) -> int:
    """Connections that are held back by now."""
    return sum(connection.state in BLOCKED for connection in view.connections)


def who_is_held(view: View, words: str) -> list[EvidenceReport]:
    """Connections and probes that are held back."""
    evidence = []
    if view.fresh("connections"):
        count = f"{blocked_count(view)}"
        evidence.append(
            EvidenceReport(what="connections held back", value=count, expected="0", source="/api/connections state")
        )
    evidence.extend(
        EvidenceReport(
            what=f"probe {outcome.probe} {outcome.stream}",
            value=f"blocked: {outcome.reason}",
            expected="running",
            source="probe: connection.blocked",
        )
        for outcome in held_probes(view, words)[:1]
    )
    return evidence


def since(view: View, node: str | None, resource: str) -> str | None:
    """The first of the latest readings in a row that told of the alarm."""
    first = None
    for seen in reversed(view.window.readings("health")):
        if not any(a.resource == resource and a.node == node for check in seen.value for a in check.alarms):
            break
        first = seen.at.iso()
    return first
