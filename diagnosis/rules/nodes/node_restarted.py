"""node-restarted (D11): a node was restarted while it was watched; this explains what was lost or disconnected.

One that was started shortly before it was watched, as in one look after a crash, is reported where a queue waits for
its consumer. Whether it ran before is not known.
"""

from collections.abc import Iterator

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.routes import dead_letter_targets
from diagnosis.rules.nodes._shared.node_history import node_subject, restarts
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import delta

NAME = "node-restarted"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its uptime, which falls only with a restart."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        if not node.running or node.uptime_seconds is None:
            continue
        seen = [each.at for each in restarts(view, node.name)]
        if seen and (view.now.since(seen[-1]) <= limits.restart_told or len(seen) >= limits.restart_loop):
            yield _finding(view, node.name, node.uptime_seconds, seen)
        elif not seen and node.uptime_seconds < limits.restart_recent and _lacks_consumers(view, node):
            yield _finding(view, node.name, node.uptime_seconds, [])


def _lacks_consumers(view: View, node: Node) -> bool:
    """Return whether messages wait in a lasting queue of a node, and nobody consumes: its clients are not all back."""
    return any(
        each.node == node.name
        and each.consumers == 0
        and each.messages_ready
        and each.durable
        and not is_private(each)
        and each.key not in dead_letter_targets(view)
        and each.setting("dead-letter-exchange") is None
        and delta(view.history(each), "publish") > 0
        for each in view.queues
    )


def _finding(view: View, name: str, uptime: float, seen: list[Instant]) -> Finding:
    looping = len(seen) >= view.thresholds.nodes.restart_loop
    where = source("/api/nodes", "uptime")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if looping else Severity.INFO,
        subject=node_subject(name),
        since=seen[0 if looping else -1].iso() if seen else None,
        facts={"uptime_seconds": uptime, "restarts": len(seen)},
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="uptime", value=uptime, unit=Unit.SECONDS, source=where),
            Evidence(key="restarts", value=len(seen), source=where),
        ),
        involved=Involved(nodes=(name,)),
    )
