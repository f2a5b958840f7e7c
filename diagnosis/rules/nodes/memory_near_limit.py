"""memory-near-limit (D03): a node comes near its memory limit, where every publisher of the cluster is blocked.

Memory goes up and down with garbage collection, and by up to 512 MiB with the log of quorum queues; so it must stay
near the limit, or its peaks must rise. Source: https://www.rabbitmq.com/docs/memory
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.memory_use import breakdown, culprit, largest_queues
from diagnosis.rules.nodes.seen import lasting, of_node, on, since_start
from diagnosis.series import last, span
from diagnosis.window import Series
from diagnosis.words import lasting as so_long
from diagnosis.words import size

NAME = "memory-near-limit"
_LOOK_BACK = 900.0
_FORECAST_FROM = 0.5
"""Of the limit: below that a node has room for what comes and goes."""


@dataclass(frozen=True, slots=True)
class _Near:
    """How near a node is, since when, and when it will be there (seconds), where its peaks rise."""

    severity: Severity
    readings: Series[Node]
    eta: float | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by what it uses, and by where its peaks lead."""
    alarmed = {alarm.node for alarm in view.alarms if alarm.resource == "memory"}
    for node in view.nodes:
        # Over the limit it is an alarm, which has its own rule.
        if node.name in alarmed or _use(node) <= _FORECAST_FROM:
            continue
        near = _near(view, node)
        if near is not None:
            yield _finding(view, node, near)


def _use(node: Node) -> float:
    used, limit = node.mem_used, node.mem_limit
    return used / limit if node.running and used is not None and limit else 0.0


def _near(view: View, node: Node) -> _Near | None:
    limits = view.thresholds.nodes
    readings = lasting(since_start(view.node_history(node.name)), lambda seen: _use(seen) > limits.memory_near)
    eta = _eta(since_start(view.node_trend(node.name)))
    if eta is not None and eta < limits.memory_eta:
        return _Near(Severity.WARNING, readings or since_start(view.node_history(node.name)), eta)
    if span(readings) >= limits.memory_near_for:
        return _Near(Severity.WARNING, readings, None)
    return _Near(Severity.INFO, readings, None) if span(readings) >= view.thresholds.early else None


def _eta(trend: Series[Node]) -> float | None:
    """Seconds until the limit is reached at the pace of the peaks of the last quarter of an hour; None where they fall.

    Peaks of thirds, not all readings: what garbage collection gives back is no fall.
    """
    lately = last(trend, _LOOK_BACK)
    if span(lately) < _LOOK_BACK or len(lately) < 9:
        return None
    third = len(lately) // 3
    parts = (lately[:third], lately[third:-third], lately[-third:])
    peaks = [max(part, key=lambda seen: seen.value.mem_used or 0) for part in parts]
    used = [seen.value.mem_used or 0 for seen in peaks]
    limit, now = lately[-1].value.mem_limit, lately[-1].value.mem_used
    if limit is None or now is None or not used[0] < used[1] < used[2]:
        return None
    pace = (used[2] - used[0]) / max(peaks[2].at.since(peaks[0].at), 1.0)
    return max(0.0, limit - used[2]) / pace


def _finding(view: View, node: Node, near: _Near) -> FindingReport:
    used, limit, seconds = node.mem_used or 0, node.mem_limit or 0, span(near.readings)
    evidence = [
        EvidenceReport(
            what="memory used",
            value=f"{size(used)} ({_use(node):.0%} of the limit)",
            expected=f"below {view.thresholds.nodes.memory_near:.0%} of {size(limit)}",
            source="/api/nodes mem_used, mem_limit",
        )
    ]
    if near.eta is not None:
        evidence.append(
            EvidenceReport(
                what="at the limit in",
                value=f"about {so_long(near.eta)}",
                expected=f"more than {so_long(view.thresholds.nodes.memory_eta)}, or never",
                source="/api/nodes mem_used, its peaks over 15 min",
            )
        )
    evidence += [*breakdown(view, node.name), *largest_queues(view, node.name)]
    most = culprit(view, node.name)
    harmless = (
        f"; seen for {so_long(seconds)}: garbage collection may end it, a warning after "
        f"{so_long(view.thresholds.nodes.memory_near_for)}"
        if near.severity is Severity.INFO
        else ""
    )
    when = f", and reaches it in about {so_long(near.eta)}" if near.eta is not None else ""
    return FindingReport(
        rule=NAME,
        severity=near.severity,
        subject=of_node(node.name),
        since=near.readings[0].at.iso() if near.readings else None,
        summary=f"Node {node.name!r} uses {_use(node):.0%} of its memory limit of {size(limit)}{when}{harmless}",
        cause=(
            "At the limit the memory alarm blocks every publisher of the cluster."
            + (f" Most of the memory is: {most}." if most else "")
        ),
        evidence=tuple(evidence),
        next_steps=_steps(node.name),
        runbook=runbook(NAME),
    )


def _steps(name: str) -> tuple[str, ...]:
    target = on(name)
    return (
        f"see what uses the memory: rabbitmq-diagnostics {target}memory_breakdown --unit MB",
        "drain the largest queues before the alarm does it the hard way: scale their consumers",
        "close clients that hoard: rabbitmqctl list_channels connection pid prefetch_count messages_unacknowledged",
        f"see whether memory comes back by itself: rabbitmqctl {target}force_gc",
        "more memory, or a higher vm_memory_high_watermark where the machine has it to spare",
    )
