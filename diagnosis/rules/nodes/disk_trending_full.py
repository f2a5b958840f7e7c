"""disk-trending-full (D04): the free disk of a node falls towards its limit, where every publisher is blocked."""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_node, on, points_of, slope
from diagnosis.series import last, span
from diagnosis.window import Series
from diagnosis.words import amount, lasting, size

NAME = "disk-trending-full"
_SMOOTH = 0.5
"""Each half of the time must fall at least at this part of the whole pace: one large file is no trend."""


@dataclass(frozen=True, slots=True)
class _Fall:
    """Bytes a second, seconds to the limit, and the readings that tell."""

    pace: float
    eta: float
    readings: Series[Node]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by how its free disk fell."""
    alarmed = {alarm.node for alarm in view.alarms if alarm.resource == "disk"}
    limits = view.thresholds.nodes
    for node in view.nodes:
        if not node.running or node.disk_free is None or node.disk_free_limit is None or node.name in alarmed:
            continue
        history, trend = view.node_history(node.name), view.node_trend(node.name)
        near = _fall(last(history, limits.disk_watched_soon), limits.disk_watched_soon)
        short = _fall(last(history, limits.disk_look), limits.disk_look)
        if (far := _fall(trend, limits.disk_watched)) and far.eta < limits.disk_eta:
            yield _finding(view, node, far, Severity.WARNING)
        elif near and near.eta < limits.disk_eta_soon:
            yield _finding(view, node, near, Severity.WARNING)
        elif short and short.eta < limits.disk_eta_soon:
            yield _finding(view, node, short, Severity.INFO)


def _fall(readings: Series[Node], at_least: float) -> _Fall | None:
    """How the free disk falls over these readings, evenly; None where it does not."""
    # A limit that was changed meanwhile changes the forecast, and not the trend.
    if len(readings) < 3 or span(readings) < at_least:
        return None
    points = points_of(readings, lambda node: node.disk_free)
    half = len(points) // 2
    paces = [slope(part) for part in (points, points[: half + 1], points[half:])]
    latest = readings[-1].value
    if any(pace is None or pace >= 0 for pace in paces) or latest.disk_free is None:
        return None
    whole, first, second = (-(pace or 0.0) for pace in paces)
    if min(first, second) < _SMOOTH * whole:
        return None
    return _Fall(whole, max(0.0, latest.disk_free - (latest.disk_free_limit or 0)) / whole, readings)


def _finding(view: View, node: Node, fall: _Fall, severity: Severity) -> FindingReport:
    watched, limits = span(fall.readings), view.thresholds.nodes
    free, limit = node.disk_free or 0, node.disk_free_limit or 0
    harmless = (
        f"; seen for {lasting(watched)}: a burst looks the same, a warning after {lasting(limits.disk_watched_soon)}"
        if severity is Severity.INFO
        else ""
    )
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=of_node(node.name),
        since=fall.readings[0].at.iso(),
        summary=(
            f"The disk of node {node.name!r} is at its limit in about {lasting(fall.eta)}: {size(free)} free, "
            f"{size(fall.pace * 60)} less a minute{harmless}"
        ),
        cause="At the limit the disk alarm blocks every publisher of the cluster. " + _whose(view, node),
        evidence=(
            EvidenceReport(
                what="free disk",
                value=f"{size(free)}, falling by {size(fall.pace * 60)} a minute over {lasting(watched)}",
                expected=f"above {size(limit)}, and not falling",
                source="/api/nodes disk_free, disk_free_limit",
            ),
            EvidenceReport(
                what="at the limit in",
                value=f"about {lasting(fall.eta)}",
                expected=f"more than {lasting(limits.disk_eta)}",
                source="linear fit",
            ),
            *_stored(view, node),
        ),
        next_steps=(
            f"see which disk it is and what fills it: rabbitmq-diagnostics {on(node.name)}status   # then: du -xsh *",
            "if it is the log: lower its level or rotate it: rabbitmqctl set_log_level warning",
            "if it is queues: start or scale consumers of the largest, or purge what is disposable",
            "a quorum queue with little in it and a large log: a message that is never acknowledged holds it",
            "extend the volume before the alarm",
        ),
        runbook=runbook(NAME),
    )


def _whose(view: View, node: Node) -> str:
    stored = sum(queue.message_bytes or 0 for queue in view.queues if _is_here(queue.members, queue.node, node))
    if not view.fresh("queues"):
        return "What fills the disk is not told by the API."
    return (
        f"Its queues hold {size(stored)} of messages: compare that with what is missing; the rest is logs, the queues' "
        "own journals, or another program on this disk."
    )


def _stored(view: View, node: Node) -> list[EvidenceReport]:
    here = [queue for queue in view.queues if queue.message_bytes and _is_here(queue.members, queue.node, node)]
    here.sort(key=lambda queue: (-(queue.message_bytes or 0), queue.key))
    return [
        EvidenceReport(
            what=f"queue {queue.name!r} in vhost {queue.vhost!r}",
            value=f"{size(queue.message_bytes or 0)} in {amount(queue.messages or 0, 'message')}",
            source="/api/queues message_bytes, messages",
        )
        for queue in here[:3]
    ]


def _is_here(members: tuple[str, ...] | None, home: str | None, node: Node) -> bool:
    return node.name in (members or (home,))
