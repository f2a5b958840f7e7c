"""poison-drop: a consumer requeues everything from a quorum queue with a delivery limit and no dead-letter exchange.

`basic.reject` counts towards the limit on every version; `basic.nack` does not from 4.3 on.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher, ready
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.poison-drop"
LIMIT = 3
MESSAGES = 20
_PAUSE = 0.01


def inject(fault: Fault) -> None:
    """Publish one message a second; reject each with requeue until the queue drops it."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-delivery-limit": LIMIT})
    channel = publisher(fault, "fault-poison-drop-publisher")
    publish(channel, QUEUE, MESSAGES)
    consumer = fault.connect("fault-poison-drop").channel()
    rejected = 0

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal rejected
        time.sleep(_PAUSE)
        inner.basic_reject(method.delivery_tag, requeue=True)
        rejected += 1

    consumer.basic_qos(prefetch_count=1)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-poison-drop")
    announced = False
    for _ in fault.ticks(1.0):
        publish(channel, QUEUE)
        if not announced and rejected >= MESSAGES * LIMIT and ready(channel, QUEUE) < MESSAGES:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="poison-drop",
    rule="poison-drop",
    summary="a consumer requeues every message of a quorum queue, which drops each one after 3 redeliveries",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("requeue-loop", "quorum-queue-without-dlx"),
    one_shot=False,
)
