"""disk-trending-full (D04): the free disk of a node falls towards its limit, where the broker blocks all publishers."""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.rules.nodes._shared.largest_queues import by_disk, disk_evidence, is_on
from diagnosis.rules.nodes._shared.node_history import node_subject, points_of, slope
from diagnosis.rules.nodes._shared.resource_alarm import nodes_in_alarm
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "disk-trending-full"
_STEADY = 0.5
"""Minimum rate of each half of the period, as a share of the whole rate: one large file is no trend."""


@dataclass(frozen=True, slots=True)
class DiskTrend:
    """Rate at which free disk falls (bytes per second), seconds until the limit, and the readings that show it."""

    fall_rate: float
    eta_seconds: float
    readings: Series[Node]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by how its free disk fell."""
    alarmed = nodes_in_alarm(view, "disk")
    limits = view.thresholds.nodes
    for node in view.nodes:
        if not node.running or node.disk_free is None or node.disk_free_limit is None or node.name in alarmed:
            continue
        history, trend = view.node_history(node.name), view.node_trend(node.name)
        near = disk_trend(last(history, limits.disk_watched_soon), limits.disk_watched_soon)
        short = disk_trend(last(history, limits.disk_look), limits.disk_look)
        if (far := disk_trend(trend, limits.disk_watched)) and far.eta_seconds < limits.disk_eta:
            yield _finding(view, node, far, Severity.WARNING)
        elif near and near.eta_seconds < limits.disk_eta_soon:
            yield _finding(view, node, near, Severity.WARNING)
        elif short and short.eta_seconds < limits.disk_eta_soon:
            yield _finding(view, node, short, Severity.INFO)


def disk_trend(readings: Series[Node], at_least: float) -> DiskTrend | None:
    """Return the trend of free disk over these readings; None if it does not fall steadily."""
    # A limit that was changed in between changes the forecast, not the trend.
    if len(readings) < 3 or span(readings) < at_least:
        return None
    points = points_of(readings, lambda node: node.disk_free)
    half = len(points) // 2
    slopes = [slope(part) for part in (points, points[: half + 1], points[half:])]
    latest = readings[-1].value
    if any(each is None or each >= 0 for each in slopes) or latest.disk_free is None:
        return None
    whole, first, second = (-(each or 0.0) for each in slopes)
    if min(first, second) < _STEADY * whole:
        return None
    return DiskTrend(whole, max(0.0, latest.disk_free - (latest.disk_free_limit or 0)) / whole, readings)


def _finding(view: View, node: Node, trend: DiskTrend, severity: Severity) -> Finding:
    limits = view.thresholds.nodes
    stored = sum(queue.message_bytes or 0 for queue in view.queues if is_on(queue, node.name))
    fallen = trend.fall_rate * span(trend.readings)
    # Queues that hold less than went cannot be the reason.
    largest = by_disk(view, node.name) if stored >= fallen else []
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_subject(node.name),
        since=trend.readings[0].at.iso(),
        facts={
            "eta_seconds": trend.eta_seconds,
            "free_bytes": node.disk_free,
            "limit_bytes": node.disk_free_limit,
            "fall_bytes_rate": trend.fall_rate,
            "fallen_bytes": fallen,
            "queue_bytes": stored if view.fresh("queues") else None,
            "largest_queue": {"vhost": largest[0].vhost, "name": largest[0].name} if largest else None,
            "warning_after_seconds": limits.disk_watched_soon,
            "expected_eta_seconds": limits.disk_eta,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.LIKELY,
        seen_seconds=span(trend.readings),
        evidence=(
            Evidence(
                key="disk_free",
                value=node.disk_free,
                unit=Unit.BYTES,
                source=source("/api/nodes", "disk_free", "disk_free_limit"),
            ),
            Evidence(key="eta", value=trend.eta_seconds, unit=Unit.SECONDS, source=source("/api/nodes", "disk_free")),
            *disk_evidence(largest),
        ),
        involved=Involved(nodes=(node.name,), queues=tuple(map(queue_ref, largest))),
    )
