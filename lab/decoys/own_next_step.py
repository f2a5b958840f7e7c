"""A consumer that publishes to its own queue: every message once more as its next step, then it is done."""

from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.own-next-step"
_RATE = 6.0


def inject(fault: Fault) -> None:
    """Publish at a constant rate; each message has two steps, so half of what is published comes from the consumer."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-own-next-step-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("decoy-own-next-step").channel()
    consumer.basic_qos(prefetch_count=10)

    def take(channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        if not properties.type:
            channel.basic_publish("", QUEUE, body, pika.BasicProperties(delivery_mode=2, type="second"))
        channel.basic_ack(method.delivery_tag)

    consumer.basic_consume(QUEUE, take)
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, QUEUE)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.own-next-step",
    rule="",
    summary="a consumer publishes the second step of each message to its own queue",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
