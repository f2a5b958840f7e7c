"""classic-queue-node-down (C11): classic queues cannot be reached because the node that hosts them is down.

A classic queue lives on one node. Its clients get 404; what is published to it through an exchange is nacked, or lost
silently if the publisher does not use confirms. There is one finding per node, however many queues it hosts.
Source: https://www.rabbitmq.com/docs/classic-queues, https://www.rabbitmq.com/docs/clustering
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.snapshot import Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_names
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

NAME = "classic-queue-node-down"

UNREACHABLE = ("down", "stopped")
"""States of a queue whose process cannot be reached: its node crashed, or was shut down."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Collect the classic queues that cannot be reached, by their node."""
    unreachable: dict[str, list[Queue]] = {}
    for queue in view.all_queues:
        if queue.state in UNREACHABLE and queue.node and queue.type in ("classic", None):
            unreachable.setdefault(queue.node, []).append(queue)
    for name, queues in sorted(unreachable.items()):
        node = view.node(name)
        down = node is not None and node.running is False
        seconds = max(span(stretch(view.history(queue), _both_unreachable)) for queue in queues[:20])
        if not down and seconds < view.thresholds.queues.node_down_for:
            continue
        severity = Severity.CRITICAL if any(queue.durable is not False for queue in queues) else Severity.WARNING
        yield _finding(view, name, node, queues, severity, seconds)


def _both_unreachable(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return older.value.state in UNREACHABLE and newer.value.state in UNREACHABLE


def _finding(
    view: View, name: str, node: Node | None, queues: list[Queue], severity: Severity, seconds: float
) -> Finding:
    down = node is not None and node.running is False
    since = min(stretch(view.history(queue), _both_unreachable)[0].at.iso() for queue in queues[:20])
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="node", name=name, node=name),
        since=since,
        facts={
            "node": name,
            "node_state": "down" if down else "not_listed" if node is None else "running",
            "queue_count": len(queues),
            "queue_names": queue_names(queues)[:MAX_NAMED],
            "states": sorted({queue.state or "" for queue in queues}),
            "vhosts": sorted({queue.vhost for queue in queues}),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=(
            Evidence(key="queues", source=source("/api/queues", "state", "node")),
            Evidence(key="node", source=source("/api/nodes", "running")),
        ),
        involved=Involved(queues=queue_refs(queues), nodes=(name,)),
    )
