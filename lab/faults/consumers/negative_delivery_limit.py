"""negative-delivery-limit: before 4.0 a quorum queue with a negative limit deletes what a consumer returns once.

From 4.0 on a negative limit is none. Seen on 3.10.8: delivered once, returned with requeue, gone.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

from ackscope.findings import Subject
from lab.faults.consumers.messages import settle_all
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.negative-delivery-limit"


def inject(fault: Fault) -> None:
    """Publish 8 messages a second; a consumer returns each of them with requeue."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-delivery-limit": -1})
    settle_all(fault, QUEUE, lambda channel, tag: channel.basic_nack(tag, requeue=True))


SPEC = FaultSpec(
    name="negative-delivery-limit",
    rule="poison-drop",
    summary="a consumer returns messages of a quorum queue whose negative delivery limit deletes them at once",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("3.10",),
    also=("quorum-queue-without-dlx",),
    one_shot=False,
)
