"""cpu-saturation (D08): far more Erlang processes of a node want a processor than it has.

Its run queue is a sample of one moment, so that several readings must agree.
Source: https://www.rabbitmq.com/docs/runtime#cpu
"""

from collections.abc import Iterable, Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Channel, Connection, Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_node, on, since_start
from diagnosis.series import last, span
from diagnosis.window import Series
from diagnosis.words import client, lasting, some

NAME = "cpu-saturation"
_AGREE = 0.7
"""Part of the readings that must show it: catalogue, 3 of 4."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node whose run queue is long now, or was a moment ago."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        readings = since_start(view.node_history(node.name))
        if not readings or not any(_is_long(seen.value, limits.cpu_queue) for seen in readings[-2:]):
            continue
        early = last(readings, view.thresholds.early)
        if not _agree(early, limits.cpu_queue, view.thresholds.early):
            continue
        whole = last(readings, limits.cpu_for)
        long = _agree(whole, limits.cpu_queue, limits.cpu_for)
        yield _finding(view, node, whole if long else early, Severity.WARNING if long else Severity.INFO)


def _is_long(node: Node, times: float) -> bool:
    return bool(node.run_queue is not None and node.processors and node.run_queue > times * node.processors)


def _agree(readings: Series[Node], times: float, seconds: float) -> bool:
    return span(readings) >= seconds and sum(_is_long(seen.value, times) for seen in readings) >= max(
        2.0, _AGREE * len(readings)
    )


def _finding(view: View, node: Node, readings: Series[Node], severity: Severity) -> FindingReport:
    waiting = [seen.value.run_queue or 0 for seen in readings]
    middle = sorted(waiting)[len(waiting) // 2]
    busy = _busiest(view, node, span(readings))
    evidence = [
        EvidenceReport(
            what="Erlang processes that wait for a processor",
            value=f"{middle} at {node.processors} processors, the middle of {len(waiting)} readings",
            expected=f"at most {view.thresholds.nodes.cpu_queue * (node.processors or 0):.0f}",
            source="/api/nodes run_queue, processors",
        ),
        *busy,
        *_churn(readings),
    ]
    rtt = next((o.steps["declare"].seconds.p50 for o in view.outcomes_of("rtt") if "declare" in o.steps), None)
    if rtt is not None:
        evidence.append(
            EvidenceReport(
                what="a question to the broker takes",
                value=f"{rtt * 1000:.1f} ms",
                source="probe rtt, median of the last minute",
            )
        )
    wait = (
        f"; seen for {lasting(span(readings))}: a start or a burst looks the same, a warning after "
        f"{lasting(view.thresholds.nodes.cpu_for)}"
        if severity is Severity.INFO
        else ""
    )
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=of_node(node.name),
        since=readings[0].at.iso(),
        summary=f"Node {node.name!r} has too little processor time: all that it does takes longer{wait}",
        cause=(
            f"About {middle} of its Erlang processes wait for one of {node.processors} processors. "
            + (f"Most work lately: {busy[0].value}." if busy else "Which of them works most, the API does not tell.")
        ),
        evidence=tuple(evidence),
        next_steps=_steps(node.name),
        runbook=runbook(NAME),
    )


def _busiest(view: View, node: Node, seconds: float) -> list[EvidenceReport]:
    """Queues, channels and connections of the node that did most work since the reading before."""
    if not seconds:
        return []
    found = [
        *_work((queue, view.history(queue)) for queue in view.queues if queue.node == node.name),
        *_work((each, view.channel_history(each.name)) for each in view.channels if each.node == node.name),
        *_work((each, view.connection_history(each.name)) for each in view.connections if each.node == node.name),
    ]
    found.sort(key=lambda each: (-each[0], each[1]))
    told = [f"{name} ({rate / 1e6:.1f} million reductions/s)" for rate, name in found if rate >= _MUCH]
    source = "/api/queues, /api/channels, /api/connections reductions"
    return [EvidenceReport(what="works most", value=some(told), source=source)] if told else []


_MUCH = 1e6
"""Reductions a second of one object from which on it is worth naming; a processor does some ten million."""


def _work(
    objects: Iterable[tuple[Queue | Channel | Connection, Series[Queue] | Series[Channel] | Series[Connection]]],
) -> Iterator[tuple[float, str]]:
    for each, history in objects:
        if len(history) < 2:
            continue
        before, after = history[-2], history[-1]
        seconds = after.at.since(before.at)
        if before.value.reductions is None or after.value.reductions is None or seconds <= 0:
            continue
        yield (after.value.reductions - before.value.reductions) / seconds, _name(each)


def _name(each: Queue | Channel | Connection) -> str:
    if isinstance(each, Queue):
        return f"queue {each.name!r} in vhost {each.vhost!r}"
    if isinstance(each, Channel):
        return f"channel {each.name!r}"
    return f"connection of {client(each, None)!r}"


def _churn(readings: Series[Node]) -> list[EvidenceReport]:
    """What clients open and close: each opening is work."""
    first, latest, seconds = readings[0].value.churn, readings[-1].value.churn, span(readings)
    rates = {
        key: (latest[key] - first[key]) / seconds
        for key in ("connection_created", "channel_created", "queue_created")
        if seconds and key in first and key in latest
    }
    told = [f"{rate:.0f} {key.replace('_created', 's')}/s" for key, rate in rates.items() if rate >= 1]
    return [EvidenceReport(what="opened", value=", ".join(told), source="/api/nodes churn")] if told else []


_WASTE = "clients that open a connection or channel for each message, requeue loops, eager monitoring"


def _steps(name: str) -> tuple[str, ...]:
    target = on(name)
    return (
        f"see what works: rabbitmq-diagnostics {target}observer   # press r and Enter: by reductions",
        "see whether something else takes the processors: top, and steal time (st) of a virtual machine",
        f"stop what costs for nothing: {_WASTE}",
        f"see whether processes hang: rabbitmq-diagnostics {target}maybe_stuck",
        "later: more queues (one queue is one core), more nodes, or more processors",
    )
