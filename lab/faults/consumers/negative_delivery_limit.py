"""negative-delivery-limit: before 4.0 a quorum queue with a negative limit deletes what a consumer returns once.

From 4.0 on a negative limit is none. Seen on 3.10.8: delivered once, returned with requeue, gone.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.negative-delivery-limit"
_RATE, _PROOF = 8.0, 20


def inject(fault: Fault) -> None:
    """Publish 8 messages a second; a consumer returns each of them with requeue."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-delivery-limit": -1})
    channel = publisher(fault, "fault-negative-delivery-limit-publisher")
    consumer = fault.connect("fault-negative-delivery-limit").channel()
    returned = 0

    def requeue(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal returned
        inner.basic_nack(method.delivery_tag, requeue=True)
        returned += 1

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, requeue, consumer_tag="fault-negative-delivery-limit")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and returned >= _PROOF:
            fault.announce()
            announced = True


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
