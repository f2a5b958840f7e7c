"""quorum-queue-minority: two of three nodes stop, and a quorum queue with messages loses its majority.

Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.cluster.nodes import has_replicas, stop_apps
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.quorum-queue-minority"


def inject(fault: Fault) -> None:
    """Declare the queue on all nodes, publish one message, and stop the brokers of the other two nodes."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    with fault.briefly("fault-quorum-queue-minority") as channel:
        channel.confirm_delivery()
        channel.basic_publish("", QUEUE, b"minority", BasicProperties(delivery_mode=PERSISTENT))
    has_replicas(fault, QUEUE, 3)
    stop_apps(fault, 1, 2)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="quorum-queue-minority",
    rule="quorum-queue-minority",
    summary="two of three nodes stop: a quorum queue has no majority and neither accepts nor delivers messages",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    nodes=3,
    alone=True,
    also=("node-down", "metadata-minority", "quorum-queue-under-replicated", "stream-replica-missing"),
)
