"""reject-loss: a consumer rejects everything without requeue, and the queue has no dead-letter exchange.

Source: https://www.rabbitmq.com/docs/nack
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.reject-loss"
_RATE, _PROOF = 8.0, 20


def inject(fault: Fault) -> None:
    """Publish 8 messages a second; a consumer rejects each of them."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-reject-loss-publisher")
    consumer = fault.connect("fault-reject-loss").channel()
    rejected = 0

    def reject(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal rejected
        inner.basic_reject(method.delivery_tag, requeue=False)
        rejected += 1

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, reject, consumer_tag="fault-reject-loss")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="reject-loss",
    rule="reject-loss",
    summary="a consumer rejects every message of a queue without requeue, and no dead-letter exchange keeps them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
