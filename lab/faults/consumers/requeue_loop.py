"""requeue-loop: a consumer requeues every message, so the same three are redelivered endlessly.

A classic queue does not end this, because only quorum queues have a delivery limit.
Source: https://www.rabbitmq.com/docs/quorum-queues#repeated-requeues
"""

import time
from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.requeue-loop"
MESSAGES = 3
_PAUSE = 0.01
_PROOF = 20


def inject(fault: Fault) -> None:
    """Publish three messages; nack each delivery with requeue, about 100 times a second."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("fault-requeue-loop-publisher").channel()
    publisher.confirm_delivery()
    for _ in range(MESSAGES):
        publisher.basic_publish("", QUEUE, b"requeue-loop", BasicProperties(delivery_mode=PERSISTENT))
    consumer = fault.connect("fault-requeue-loop").channel()
    redelivered = 0

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal redelivered
        redelivered += method.redelivered
        # A limited rate: the fault must be visible without using the whole machine.
        time.sleep(_PAUSE)
        channel.basic_nack(method.delivery_tag, requeue=True)

    consumer.basic_qos(prefetch_count=1)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-requeue-loop")
    announced = False
    for _ in fault.ticks(0.1):
        if not announced and redelivered >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="requeue-loop",
    rule="requeue-loop",
    summary="a consumer nacks with requeue: the same 3 messages are redelivered about 100 times a second",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
