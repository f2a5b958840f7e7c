"""memory-near-limit (D03): a node approaches its memory limit, where the broker blocks every publisher.

Memory varies with garbage collection, and by up to 512 MiB with the log of quorum queues. So the rule requires that it
stays near the limit or that its peaks rise. Source: https://www.rabbitmq.com/docs/memory
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.rules.nodes._shared.largest_queues import by_memory
from diagnosis.rules.nodes._shared.largest_queues import memory_evidence as queue_evidence
from diagnosis.rules.nodes._shared.memory_breakdown import dominant_group, memory_evidence
from diagnosis.rules.nodes._shared.node_history import node_subject, since_start, trailing
from diagnosis.rules.nodes._shared.resource_alarm import nodes_in_alarm
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "memory-near-limit"
_LOOK_BACK_SECONDS = 900.0
_FORECAST_FROM = 0.5
"""Share of the limit below which a node has room for normal variation."""


@dataclass(frozen=True, slots=True)
class _Pressure:
    """How near a node is to its limit: since when, and the seconds until it reaches the limit if its peaks rise."""

    severity: Severity
    readings: Series[Node]
    eta_seconds: float | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its used memory and by the trend of its peaks."""
    # Above the limit there is an alarm, which has its own rule.
    alarmed = nodes_in_alarm(view, "memory")
    for node in view.nodes:
        if node.name in alarmed or _use(node) <= _FORECAST_FROM:
            continue
        pressure = _pressure(view, node)
        if pressure is not None:
            yield _finding(view, node, pressure)


def _use(node: Node) -> float:
    used, limit = node.mem_used, node.mem_limit
    return used / limit if node.running and used is not None and limit else 0.0


def _pressure(view: View, node: Node) -> _Pressure | None:
    limits = view.thresholds.nodes
    history = since_start(view.node_history(node.name))
    readings = trailing(history, lambda seen: _use(seen) > limits.memory_near)
    eta = _eta_seconds(since_start(view.node_trend(node.name)))
    if eta is not None and eta < limits.memory_eta:
        return _Pressure(Severity.WARNING, readings or history, eta)
    if span(readings) >= limits.memory_near_for:
        return _Pressure(Severity.WARNING, readings, None)
    return _Pressure(Severity.INFO, readings, None) if span(readings) >= view.thresholds.early else None


def _eta_seconds(trend: Series[Node]) -> float | None:
    """Return the seconds until the peaks of the last 15 min reach the limit; None if they do not rise.

    Only the peak of each third counts, because memory freed by garbage collection is no decline.
    """
    recent = last(trend, _LOOK_BACK_SECONDS)
    if span(recent) < _LOOK_BACK_SECONDS or len(recent) < 9:
        return None
    third = len(recent) // 3
    parts = (recent[:third], recent[third:-third], recent[-third:])
    peaks = [max(part, key=lambda seen: seen.value.mem_used or 0) for part in parts]
    used = [seen.value.mem_used or 0 for seen in peaks]
    limit, now = recent[-1].value.mem_limit, recent[-1].value.mem_used
    if limit is None or now is None or not used[0] < used[1] < used[2]:
        return None
    bytes_a_second = (used[2] - used[0]) / max(peaks[2].at.since(peaks[0].at), 1.0)
    return max(0.0, limit - used[2]) / bytes_a_second


def _finding(view: View, node: Node, pressure: _Pressure) -> Finding:
    limits, largest = view.thresholds.nodes, by_memory(view, node.name)
    evidence = [
        Evidence(
            key="memory_used",
            value=node.mem_used,
            unit=Unit.BYTES,
            source=source("/api/nodes", "mem_used", "mem_limit"),
            facts={"near_share": limits.memory_near},
        )
    ]
    if pressure.eta_seconds is not None:
        evidence.append(
            Evidence(
                key="eta",
                value=pressure.eta_seconds,
                unit=Unit.SECONDS,
                source=source("/api/nodes", "mem_used"),
                facts={"expected_seconds": limits.memory_eta},
            )
        )
    evidence += [*memory_evidence(view, node.name), *queue_evidence(largest)]
    info = pressure.severity is Severity.INFO
    return Finding(
        rule=NAME,
        severity=pressure.severity,
        subject=node_subject(node.name),
        since=pressure.readings[0].at.iso() if pressure.readings else None,
        facts={
            "used_bytes": node.mem_used,
            "limit_bytes": node.mem_limit,
            "used_share": _use(node),
            "eta_seconds": pressure.eta_seconds,
            "dominant_group": dominant_group(view, node.name),
            "warning_after_seconds": limits.memory_near_for,
        },
        certainty=Certainty.EARLY if info else Certainty.LIKELY if pressure.eta_seconds else Certainty.CERTAIN,
        seen_seconds=span(pressure.readings),
        evidence=tuple(evidence),
        involved=Involved(nodes=(node.name,), queues=tuple(map(queue_ref, largest))),
    )
