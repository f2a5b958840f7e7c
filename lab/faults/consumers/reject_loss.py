"""reject-loss: a consumer rejects everything without requeue, and the queue has no dead-letter exchange.

Source: https://www.rabbitmq.com/docs/nack
"""

from ackscope.findings import Subject
from lab.faults.consumers.messages import settle_all
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.reject-loss"


def inject(fault: Fault) -> None:
    """Publish 8 messages a second; a consumer rejects each of them."""
    fault.make_queue(QUEUE)
    settle_all(fault, QUEUE, lambda channel, tag: channel.basic_reject(tag, requeue=False))


SPEC = FaultSpec(
    name="reject-loss",
    rule="reject-loss",
    summary="a consumer rejects every message of a queue without requeue, and no dead-letter exchange keeps them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
