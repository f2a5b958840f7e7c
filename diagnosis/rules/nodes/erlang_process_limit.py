"""erlang-process-limit (D07): a node uses up the processes that its Erlang may have; at the limit the node ends.

Every connection, channel and queue is a few of them. Source: https://www.rabbitmq.com/docs/runtime#process-limit
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import lasting, of_node, on, since_start
from diagnosis.series import last, span
from diagnosis.window import Series
from diagnosis.words import amount

NAME = "erlang-process-limit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        if _use(node) <= limits.processes_near:
            continue
        near = lasting(since_start(view.node_history(node.name)), lambda seen: _use(seen) > limits.processes_near)
        if span(near) < view.thresholds.early:
            continue
        lately = last(near, view.thresholds.interval)
        critical = all(_use(seen.value) > limits.processes_critical for seen in lately)
        yield _finding(view, node, near, Severity.CRITICAL if critical else Severity.WARNING)


def _use(node: Node) -> float:
    used, total = node.proc_used, node.proc_total
    return used / total if node.running and used is not None and total else 0.0


def _finding(view: View, node: Node, near: Series[Node], severity: Severity) -> FindingReport:
    evidence = [
        EvidenceReport(
            what="Erlang processes",
            value=f"{node.proc_used} of {node.proc_total} ({_use(node):.0%})",
            expected=f"below {view.thresholds.nodes.processes_near:.0%}",
            source="/api/nodes proc_used, proc_total",
        )
    ]
    # Absent is not none: only what was read is counted.
    counts = {
        "connection": sum(each.node == node.name for each in view.connections) if view.fresh("connections") else None,
        "channel": sum(each.node == node.name for each in view.channels) if view.fresh("channels") else None,
        "queue": sum(each.node == node.name for each in view.all_queues) if view.fresh("queues") else None,
    }
    told = [amount(number, noun) for noun, number in counts.items() if number is not None]
    if told:
        evidence.append(
            EvidenceReport(
                what="what it serves", value=", ".join(told), source="/api/connections, /api/channels, /api/queues"
            )
        )
    served = sum(number for number in counts.values() if number is not None)
    inside = node.proc_used is not None and len(told) == len(counts) and node.proc_used > 20 * (served + 100)
    whose = (
        " Its clients and queues do not account for them: something inside the node starts them, perhaps a plugin."
        if inside
        else " A few belong to each connection, channel and queue; the largest of these numbers is where to look."
    )
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=of_node(node.name),
        since=near[0].at.iso(),
        summary=(
            f"Node {node.name!r} uses {node.proc_used} of {node.proc_total} Erlang processes ({_use(node):.0%}); "
            "at the limit it ends"
        ),
        cause="The node has nearly as many Erlang processes as it may have, and cannot go on without new ones." + whose,
        evidence=tuple(evidence),
        next_steps=_steps(node.name),
        runbook=runbook(NAME),
    )


def _steps(name: str) -> tuple[str, ...]:
    target = on(name)
    return (
        f"see what there is most of: rabbitmq-diagnostics {target}status   # its section 'Totals'",
        f"see who opens channels: rabbitmqctl {target}list_connections name channels client_properties | sort -k2",
        "close what leaks: restart the application that opens connections or channels and does not close them",
        f"delete queues that nobody uses; give temporary ones an expiry: {_EXPIRE}",
        f"later, if all of it is wanted: {_RAISE}",
    )


_EXPIRE = "rabbitmqctl set_policy -p VHOST tmp '^tmp' '{\"expires\": 1800000}' --apply-to queues"
_RAISE = "RABBITMQ_MAX_NUMBER_OF_PROCESSES=2097152 in rabbitmq-env.conf, then restart the node"
