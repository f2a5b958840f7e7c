"""memory-alarm (D01): a node is over its memory limit, and the broker blocks every publisher of the cluster."""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes import alarm
from diagnosis.rules.nodes.memory_use import breakdown, culprit, largest_queues
from diagnosis.rules.nodes.seen import of_cluster, of_node, on
from diagnosis.words import amount, size

NAME = "memory-alarm"
_WORDS = "low on memory"
_MEMORY = alarm.Resource(
    rule=NAME,
    name="memory",
    field="/api/nodes mem_alarm",
    in_alarm=lambda node: node.mem_alarm,
    words=(_WORDS,),
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a memory alarm."""
    yield from alarm.judge(view, _MEMORY, _finding)


def _finding(view: View, name: str | None, source: str) -> FindingReport:
    node = view.node(name)
    evidence = [EvidenceReport(what="memory alarm", value="in force", expected="none", source=source)]
    if node is not None and node.mem_used is not None and node.mem_limit is not None:
        late = "" if node.mem_used >= node.mem_limit else " (a figure that is some seconds behind the alarm)"
        evidence.append(
            EvidenceReport(
                what=f"memory used{late}",
                value=size(node.mem_used),
                expected=f"below {size(node.mem_limit)}",
                source="/api/nodes mem_used, mem_limit",
            )
        )
    evidence += [*alarm.who_is_held(view, _WORDS), *breakdown(view, name), *largest_queues(view, name)]
    blocked, most = alarm.blocked_count(view), culprit(view, name)
    count = f", {amount(blocked, 'connection')} by now" if blocked else ""
    subject = of_node(name) if name else of_cluster(view)
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=subject,
        since=alarm.since(view, name, "memory"),
        summary=f"Memory alarm on {subject}: every publisher of the cluster is held back{count}",
        cause=(
            "The node uses more memory than its watermark allows; until it falls below, the broker stops reading "
            "from every connection that publishes. A connection that also consumes cannot acknowledge either."
            + (f" Most of the memory is: {most}." if most else "")
        ),
        evidence=tuple(evidence),
        next_steps=_steps(view, name),
        runbook=runbook(NAME),
    )


def _steps(view: View, name: str | None) -> tuple[str, ...]:
    target = on(name)
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
        f"{relief}   # until restart; {told}; only where the machine has that memory free",
        "when it is over, set the watermark back to what rabbitmq.conf says, or to the default",
    )
