"""stream-replica-missing: the third node stops, and with it the replica of a stream.

Source: https://www.rabbitmq.com/docs/streams#replication
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import LAST, LAST_NAME, has_replicas, stop_apps
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.stream-replica-missing"


def inject(fault: Fault) -> None:
    """Declare a stream on all nodes and stop the broker of one node."""
    fault.make_queue(QUEUE, {"x-queue-type": "stream"})
    has_replicas(fault, QUEUE, 3)
    stop_apps(fault, LAST)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="stream-replica-missing",
    rule="stream-replica-missing",
    summary="a node with a replica of a stream stops",
    subject=Subject(kind="node", name=LAST_NAME, node=LAST_NAME),
    inject=inject,
    nodes=3,
    alone=True,
    also=("node-down", "quorum-queue-under-replicated"),
)
