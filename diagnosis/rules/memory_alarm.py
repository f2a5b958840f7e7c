"""memory-alarm (D01): a node is over its memory limit, and the broker blocks every publisher of the cluster.

The health check is the authority: `mem_alarm` of /api/nodes was still false 8 s after the alarm on 4.0.
"""

from collections.abc import Iterator

from ackscope.findings import CannotTell, Evidence, Finding, Severity, Subject, runbook
from ackscope.records import ProbeOutcome, ProbeState
from diagnosis.contract import Answer, Harm, Rule, View
from diagnosis.words import amount, size

BLOCKED = {"blocked", "blocking"}
"""Connection states under an alarm: has tried to publish, has not tried yet."""


def evaluate(view: View) -> Iterator[Answer]:
    """Yield one finding for each node with a memory alarm."""
    check = view.alarm_check
    # A check that fails without a list of alarms tells that something is wrong, and not what.
    known = check is not None and (check.ok is True or bool(check.alarms))
    if known:
        sick = sorted({alarm.node for alarm in view.alarms if alarm.resource == "memory"})
        source = "/api/health/checks/alarms"
    else:
        sick = sorted(node.name for node in view.nodes if node.mem_alarm)
        source = "/api/nodes mem_alarm"
    for node in sick:
        yield _finding(view, node, source)
    if sick or known:
        return
    held = _held_probes(view)
    if held:
        yield _finding(view, None, "probe: connection.blocked")
        return
    yield CannotTell(
        rule=RULE.name,
        because="the health check for alarms gave no answer, and /api/nodes tells of alarms too late to prove anything",
        needs="let the monitoring user reach /api/health/checks/alarms, or ask: rabbitmq-diagnostics check_alarms",
    )


RULE = Rule(
    name="memory-alarm",
    title="memory alarm: every publisher of the cluster is blocked",
    harm=Harm.STOPS,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _held_probes(view: View) -> list[ProbeOutcome]:
    """Probes that the broker holds back for its memory, in a fixed order."""
    held = (o for o in view.outcomes if o.state is ProbeState.BLOCKED and "low on memory" in (o.reason or ""))
    return sorted(held, key=lambda outcome: (outcome.probe, outcome.stream))


def _finding(view: View, name: str | None, source: str) -> Finding:
    node = next((node for node in view.nodes if node.name == name), None)
    evidence = [Evidence(what="memory alarm", value="in force", expected="none", source=source)]
    if node is not None and node.mem_used is not None and node.mem_limit is not None:
        late = "" if node.mem_used >= node.mem_limit else " (a figure that is some seconds behind the alarm)"
        evidence.append(
            Evidence(
                what=f"memory used{late}",
                value=size(node.mem_used),
                expected=f"below {size(node.mem_limit)}",
                source="/api/nodes mem_used, mem_limit",
            )
        )
    blocked = sum(connection.state in BLOCKED for connection in view.connections)
    if view.fresh("connections"):
        evidence.append(
            Evidence(what="connections held back", value=f"{blocked}", expected="0", source="/api/connections state")
        )
    evidence.extend(
        Evidence(
            what=f"probe {outcome.probe} {outcome.stream}",
            value=f"blocked: {outcome.reason}",
            expected="running",
            source="probe: connection.blocked",
        )
        for outcome in _held_probes(view)[:1]
    )
    evidence.extend(_largest(view, name))
    count = f", {amount(blocked, 'connection')} by now" if blocked else ""
    subject = Subject(kind="node", name=name, node=name) if name else Subject(kind="cluster", name=view.window.cluster)
    return Finding(
        rule=RULE.name,
        severity=Severity.CRITICAL,
        subject=subject,
        since=_since(view, name),
        summary=f"Memory alarm on {subject}: every publisher of the cluster is held back{count}",
        cause=(
            "The node uses more memory than its watermark allows; until it falls below, the broker stops reading "
            "from every connection that publishes. A connection that also consumes cannot acknowledge either."
        ),
        evidence=tuple(evidence),
        next_steps=_steps(view, name),
        runbook=runbook(RULE.name),
    )


def _largest(view: View, node: str | None) -> list[Evidence]:
    """The queues that hold the most memory of the node."""
    here = [queue for queue in view.queues if queue.memory and (node is None or queue.node == node)]
    here.sort(key=lambda queue: (-(queue.memory or 0), queue.key))
    return [
        Evidence(
            what=f"queue {queue.name!r} in vhost {queue.vhost!r}",
            value=f"{size(queue.memory or 0)} of memory, {amount(queue.messages or 0, 'message')}",
            source="/api/queues memory, messages",
        )
        for queue in here[:3]
    ]


def _since(view: View, node: str | None) -> str | None:
    """The first of the latest readings in a row that told of the alarm."""
    first = None
    for seen in reversed(view.window.readings("health")):
        if not any(a.resource == "memory" and a.node == node for check in seen.value for a in check.alarms):
            break
        first = seen.at.iso()
    return first


def _steps(view: View, name: str | None) -> tuple[str, ...]:
    target = f"-n {name} " if name else ""
    # The default watermark rose with 4.0. Source: https://www.rabbitmq.com/docs/memory#threshold
    recent = view.version is not None and view.version >= (4, 0)
    default, raised = ("0.6", "0.7") if recent else ("0.4", "0.6")
    told = f"default of this version: {default}" if view.version else "default: 0.4 before 4.0, 0.6 since"
    drain = "drain the largest queues: scale their consumers, or purge what is disposable"
    hoard = "close clients that hoard unacknowledged messages"
    relief = f"let publishers go on for now: rabbitmqctl {target}set_vm_memory_high_watermark {raised}"
    return (
        f"see what uses the memory: rabbitmq-diagnostics {target}memory_breakdown --unit MB",
        f"{drain}: rabbitmqctl purge_queue -p VHOST QUEUE",
        f"{hoard}: rabbitmqctl list_channels connection pid prefetch_count messages_unacknowledged",
        f"{relief} (until restart; {told}; only where the machine has that memory free)",
        "when it is over, set the watermark back to what rabbitmq.conf says, or to the default",
    )
