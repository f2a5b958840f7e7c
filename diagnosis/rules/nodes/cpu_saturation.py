"""cpu-saturation (D08): far more Erlang processes of a node wait for a CPU core than it has cores.

The run queue is a sample of one moment, so several readings must agree.
Source: https://www.rabbitmq.com/docs/runtime#cpu
"""

from collections.abc import Iterable, Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, QueueRef, Severity, Unit, source
from ackscope.snapshot import Channel, Connection, Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.nodes._shared.node_history import node_subject, since_start
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "cpu-saturation"
_AGREE = 0.7
"""Share of the readings that must show a long run queue (catalogue: 3 of 4)."""
_BUSY_REDUCTIONS = 1e6
"""Minimum reductions per second of an object to be named; a core does about ten million."""
_OPENED = {"connection_created": "connection", "channel_created": "channel", "queue_created": "queue"}

_Work = tuple[float, Queue | Channel | Connection]
"""Reductions per second, and the object."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node whose run queue is long in one of its last two readings."""
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
    long = sum(_is_long(seen.value, times) for seen in readings)
    return span(readings) >= seconds and long >= max(2.0, _AGREE * len(readings))


def _finding(view: View, node: Node, readings: Series[Node], severity: Severity) -> Finding:
    lengths = sorted(seen.value.run_queue or 0 for seen in readings)
    run_queue = lengths[len(lengths) // 2]
    busiest = _busiest(view, node) if span(readings) else []
    facts = {
        "run_queue": run_queue,
        "cores": node.processors,
        "readings": len(readings),
        "expected_run_queue": view.thresholds.nodes.cpu_queue * (node.processors or 0),
        "busiest": [_object(rate, each) for rate, each in busiest[:3]],
        "busiest_count": len(busiest),
        "warning_after_seconds": view.thresholds.nodes.cpu_for,
    }
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_subject(node.name),
        since=readings[0].at.iso(),
        facts=facts,
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.CERTAIN,
        seen_seconds=span(readings),
        evidence=tuple(_evidence(view, run_queue, readings, busy=bool(busiest))),
        involved=Involved(
            nodes=(node.name,),
            queues=tuple(QueueRef(each.vhost, each.name) for _, each in busiest[:3] if isinstance(each, Queue)),
            channels=tuple(each.name for _, each in busiest[:3] if isinstance(each, Channel)),
            connections=tuple(each.name for _, each in busiest[:3] if isinstance(each, Connection)),
        ),
    )


def _evidence(view: View, run_queue: float, readings: Series[Node], *, busy: bool) -> Iterator[Evidence]:
    yield Evidence(key="run_queue", value=run_queue, source=source("/api/nodes", "run_queue", "processors"))
    if busy:
        where = [source(f"/api/{family}", "reductions") for family in ("queues", "channels", "connections")]
        yield Evidence(key="busiest", source=sum(where, start=()))
    opened = _opened(readings)
    if opened:
        churn = source("/api/nodes", *_OPENED)
        yield Evidence(key="opened", source=churn, facts={"opened": opened})
    declares = (o.steps["declare"].seconds.p50 for o in view.outcomes_of("rtt") if "declare" in o.steps)
    round_trip = next(declares, None)
    if round_trip is not None:
        yield Evidence(key="round_trip", value=round_trip, unit=Unit.SECONDS, source=source("probe rtt", "declare"))


def _busiest(view: View, node: Node) -> list[_Work]:
    """Return the queues, channels and connections of the node with most reductions since the previous reading."""
    found = [
        *_work((queue, view.history(queue)) for queue in view.queues if queue.node == node.name),
        *_work((each, view.channel_history(each.name)) for each in view.channels if each.node == node.name),
        *_work((each, view.connection_history(each.name)) for each in view.connections if each.node == node.name),
    ]
    return sorted((work for work in found if work[0] >= _BUSY_REDUCTIONS), key=lambda work: (-work[0], work[1].name))


def _work(
    objects: Iterable[tuple[Queue | Channel | Connection, Series[Queue] | Series[Channel] | Series[Connection]]],
) -> Iterator[_Work]:
    for each, history in objects:
        if len(history) < 2:
            continue
        before, after = history[-2], history[-1]
        seconds = after.at.since(before.at)
        if before.value.reductions is None or after.value.reductions is None or seconds <= 0:
            continue
        yield (after.value.reductions - before.value.reductions) / seconds, each


def _object(rate: float, each: Queue | Channel | Connection) -> dict[str, Fact]:
    kind = type(each).__name__.lower()
    name = client_name(each) if isinstance(each, Connection) else each.name
    return {"kind": kind, "vhost": each.vhost, "name": name, "reductions_rate": rate}


def _opened(readings: Series[Node]) -> dict[str, float]:
    """Return how many objects of each kind clients open per second, if 1 or more; each costs CPU."""
    first, latest, seconds = readings[0].value.churn, readings[-1].value.churn, span(readings)
    rates = {
        kind: (latest[counter] - first[counter]) / seconds
        for counter, kind in _OPENED.items()
        if seconds and counter in first and counter in latest
    }
    return {kind: rate for kind, rate in rates.items() if rate >= 1}
