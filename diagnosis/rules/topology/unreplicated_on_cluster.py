"""unreplicated-on-cluster (G06): durable queues with one replica, although the cluster has nodes for more.

If the node of such a queue is down, the queue cannot be used until the node is back.
Source: https://www.rabbitmq.com/docs/classic-queues, https://www.rabbitmq.com/docs/quorum-queues
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs

NAME = "unreplicated-on-cluster"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host: its durable classic queues that have messages."""
    if len(view.nodes) < view.thresholds.topology.unreplicated_nodes:
        return
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        # A mirrored queue (before 4.0) lists its mirrors, whether they are synchronised or not.
        single = queue.type == "classic" and queue.durable and not queue.exclusive and not queue.mirrors
        if single and (queue.messages or view.moved(queue, "publish")):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost, queues in sorted(found.items()):
        yield _finding(view, vhost, queues)


def _finding(view: View, vhost: str, queues: list[Queue]) -> Finding:
    messages = sum(queue.messages or 0 for queue in queues)
    nodes = Counter(queue.node or "unknown" for queue in queues)
    largest_first = sorted(queues, key=lambda queue: (-(queue.messages or 0), queue.name))
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        facts={
            "vhost": vhost,
            "queue_count": len(queues),
            "queue_names": [queue.name for queue in largest_first[:MAX_NAMED]],
            "queues_by_node": dict(sorted(nodes.items())),
            "node_count": len(view.nodes),
            "messages": messages,
        },
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="queues", value=len(queues), source=source("/api/queues", "type", "durable")),
            Evidence(key="nodes", source=source("/api/queues", "node")),
            Evidence(key="messages", value=messages, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
        ),
        involved=Involved(
            queues=queue_refs(largest_first),
            nodes=tuple(sorted(name for name in nodes if name != "unknown")),
        ),
    )
