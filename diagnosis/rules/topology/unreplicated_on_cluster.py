"""unreplicated-on-cluster (G06): durable queues with one copy, though there are nodes for more.

When the node of such a queue is gone, the queue is gone with it, until the node is back.
Source: https://www.rabbitmq.com/docs/classic-queues, https://www.rabbitmq.com/docs/quorum-queues
"""

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.words import amount, some

NAME = "unreplicated-on-cluster"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host: its durable classic queues that carry messages."""
    if len(view.nodes) < view.thresholds.topology.unreplicated_nodes:
        return
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        # A mirrored one (before 4.0) has its mirrors in the list, be they behind or not.
        lone = queue.type == "classic" and queue.durable and not queue.exclusive and not queue.mirrors
        if lone and (queue.messages or view.moved(queue, "publish")):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost, queues in sorted(found.items()):
        yield _finding(view, vhost, queues)


def _finding(view: View, vhost: str, queues: list[Queue]) -> FindingReport:
    waiting = sum(queue.messages or 0 for queue in queues)
    nodes = Counter(queue.node or "unknown" for queue in queues)
    busiest = sorted(queues, key=lambda queue: (-(queue.messages or 0), queue.name))
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost, vhost=vhost),
        since=None,
        summary=(
            f"{amount(len(queues), 'durable queue')} in use in vhost {vhost!r} with one copy on a cluster of "
            f"{len(view.nodes)} nodes: each is away whenever its node is"
        ),
        cause="They are classic queues, which live on one node; a cluster alone copies no messages.",
        evidence=(
            EvidenceReport(
                what="queues", value=some((repr(queue.name) for queue in busiest), 5), source="/api/queues type"
            ),
            EvidenceReport(
                what="their nodes",
                value=some((f"{node}: {number}" for node, number in sorted(nodes.items())), 5),
                source="/api/queues node",
            ),
            EvidenceReport(
                what="what they carry",
                value=amount(waiting, "message"),
                source="/api/queues messages",
            ),
        ),
        next_steps=(
            f"see them: rabbitmqctl list_queues -p {quote(vhost)} name type durable node messages",
            "which of them must outlive a node? Declare those as quorum queues (x-queue-type: quorum) and move to them",
            "for new ones: rabbitmqctl update_vhost_metadata VHOST --default-queue-type quorum   # 3.11 on",
        ),
        runbook=runbook(NAME),
    )
