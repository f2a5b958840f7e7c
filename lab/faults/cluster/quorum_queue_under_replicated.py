"""quorum-queue-under-replicated: a quorum queue with one member in a cluster of three nodes.

Source: https://www.rabbitmq.com/docs/quorum-queues#replication-factor
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import has_replicas
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.quorum-queue-under-replicated"


def inject(fault: Fault) -> None:
    """Declare the queue with an initial group size of one."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-quorum-initial-group-size": 1})
    has_replicas(fault, QUEUE, 1)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="quorum-queue-under-replicated",
    rule="quorum-queue-under-replicated",
    summary="a quorum queue has one member in a cluster of three nodes",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
    nodes=3,
)
