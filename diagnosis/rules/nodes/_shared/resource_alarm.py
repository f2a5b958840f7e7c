"""Shared by the two resource alarms: where an alarm is reported, since when, and which clients it blocks.

The health check is the authority: `mem_alarm` of /api/nodes was still false 8 s after the alarm on 4.0.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Evidence, Facts, Finding, Inconclusive, Involved, Source, source
from ackscope.records import ProbeOutcome, ProbeState
from ackscope.snapshot import Connection, HealthCheck, Node, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.rules.probing._shared.outcomes import stream_name
from diagnosis.rules.publishers._shared.native_publishers import stopped_by_alarm
from diagnosis.series import span

BLOCKED_STATES = {"blocked", "blocking"}
"""Connection states under an alarm: `blocked` has tried to publish, `blocking` has not yet."""

_CLIENTS = 20
"""Maximum clients of blocked connections that a finding names."""


def _of_alarm(view: View, _finding: Finding) -> Iterable[Hashable]:
    return ("blocked",) if blocked_connections(view) else ()


def _of_consumers(view: View, finding: Finding) -> Iterable[Hashable]:
    """Return a key if a connection that consumes from the queue is blocked: the broker then reads no acks from it."""
    subject = finding.subject
    queue = view.queue(subject.vhost, subject.name) if subject.kind == "queue" else None
    links = view.links(queue) if queue else ()
    return ("blocked",) if any(link.connection and link.connection.state in BLOCKED_STATES for link in links) else ()


BLOCKED_CONSUMERS = Relation(_of_alarm, _of_consumers)
"""Consumers of a queue are on connections that the alarm blocks."""

BLOCKED_CONNECTIONS = Relation(_of_alarm, lambda _view, _finding: ("blocked",))
"""The alarm blocks connections; the consequence is about blocked connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One of the two resources with an alarm, in the broker's terms.

    Attributes:
        rule: the rule that reports its alarm.
        name: its name in the list of the health check.
        field: field of /api/nodes that shows the alarm, with a delay.
        in_alarm: value of that field during an alarm.
        reasons: reasons in `connection.blocked`, for this resource alone and together with the other one.
    """

    rule: str
    name: str
    field: str
    in_alarm: Callable[[Node], bool | None]
    reasons: tuple[str, ...]


def evaluate_alarm(
    view: View, resource: Resource, finding: Callable[[View, str | None, Source], Finding]
) -> Iterator[RuleResult]:
    """Yield a finding per node in alarm, one for the cluster if only a probe shows it, else why it is unknown."""
    answered = _has_answered(view)
    if answered:
        nodes, where = nodes_in_alarm(view, resource.name), source("/api/health/checks/alarms")
    else:
        nodes = sorted(node.name for node in view.nodes if resource.in_alarm(node))
        where = source("/api/nodes", resource.field)
    for node in nodes:
        yield finding(view, node, where)
    if nodes or answered:
        return
    probes = [outcome for reason in resource.reasons for outcome in blocked_probes(view, reason)]
    if probes:
        yield finding(view, None, _of_probe(probes[0]))
    else:
        yield Inconclusive(rule=resource.rule, reason="no_alarm_check")


def _has_answered(view: View) -> bool:
    """Return whether the health check gave a usable answer.

    A check that fails without a list of alarms reports a problem without naming it.
    """
    check = view.alarm_check
    return check is not None and (check.ok is True or bool(check.alarms))


def nodes_in_alarm(view: View, resource: str) -> list[str]:
    """Return the nodes with this alarm, according to the health check."""
    return sorted({alarm.node for alarm in view.alarms if alarm.resource == resource})


def blocked_probes(view: View, reason: str) -> list[ProbeOutcome]:
    """Return the probes that the broker blocks for this reason, in a fixed order."""
    blocked = (o for o in view.outcomes if o.state is ProbeState.BLOCKED and reason in (o.reason or ""))
    return sorted(blocked, key=lambda outcome: (outcome.probe, outcome.stream))


def blocked_connections(view: View) -> list[Connection]:
    """Connections that an alarm blocks now, or will block once they publish."""
    stopped = stopped_by_alarm(view)
    return [each for each in view.connections if each.state in BLOCKED_STATES or each.name in stopped]


def _stopped_connections(view: View) -> list[Connection]:
    """Connections that an alarm has stopped: they published. The broker reads nothing more from them."""
    return [each for each in blocked_connections(view) if each.state != "blocking"]


def alarm_facts(view: View, node: str | None, resource: str, largest: list[Queue]) -> Facts:
    """Return the facts for the pages of both alarms.

    Returns:
        `{"node", "times", "watched_seconds", "blocked_connections", "stopped_connections", "largest_queue"}`; `times`
        is how often the alarm came within `watched_seconds`; `stopped_connections` are those of the blocked ones that
        published; `largest_queue` is `{"vhost", "name"}`, or None.
    """
    readings = view.window.readings("health")
    return {
        "node": node,
        "times": len(_beginnings(view, node, resource)),
        "watched_seconds": span(readings),
        "blocked_connections": len(blocked_connections(view)) if view.fresh("connections") else None,
        "stopped_connections": len(_stopped_connections(view)) if view.fresh("connections") else None,
        "largest_queue": {"vhost": largest[0].vhost, "name": largest[0].name} if largest else None,
    }


def alarm_involved(view: View, node: str | None, largest: list[Queue]) -> Involved:
    """Return the node, its largest queues and the clients that are stopped as what the finding involves."""
    blocked = _stopped_connections(view) or blocked_connections(view)
    clients = {name for each in blocked if (name := client_name(each))}
    return Involved(
        nodes=(node,) if node else (),
        queues=tuple(map(queue_ref, largest)),
        clients=tuple(sorted(clients)[:_CLIENTS]),
    )


def blocked_evidence(view: View, reason: str) -> list[Evidence]:
    """Return blocked connections and probes as evidence."""
    evidence = []
    if view.fresh("connections"):
        evidence.append(
            Evidence(
                key="blocked_connections",
                value=len(blocked_connections(view)),
                source=source("/api/connections", "state"),
                facts={"only_if_they_publish": len(blocked_connections(view)) - len(_stopped_connections(view))},
            )
        )
    evidence += [
        Evidence(
            key="blocked_probe",
            value=outcome.reason,
            source=_of_probe(outcome),
            facts={"stream": stream_name(outcome)},
        )
        for outcome in blocked_probes(view, reason)[:1]
    ]
    return evidence


def alarm_since(view: View, node: str | None, resource: str) -> str | None:
    """Return the time of the first of the latest consecutive readings with the alarm; None if it is over."""
    beginnings, readings = _beginnings(view, node, resource), view.window.readings("health")
    return beginnings[-1].iso() if beginnings and _has_alarm(readings[-1].value, node, resource) else None


def _beginnings(view: View, node: str | None, resource: str) -> list[Instant]:
    """Return the times of the readings with the alarm that follow one without it, and of the first one with it."""
    found, before = [], False
    for seen in view.window.readings("health"):
        now = _has_alarm(seen.value, node, resource)
        if now and not before:
            found.append(seen.at)
        before = now
    return found


def _has_alarm(checks: Iterable[HealthCheck], node: str | None, resource: str) -> bool:
    return any(alarm.resource == resource and alarm.node == node for check in checks for alarm in check.alarms)


def _of_probe(outcome: ProbeOutcome) -> Source:
    return source(f"probe {stream_name(outcome)}", "connection.blocked")
