"""pub-transient-in-durable: transient messages wait in a durable queue with a consumer.

Source: https://www.rabbitmq.com/docs/publishers#message-properties
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-transient-in-durable"
_BACKLOG = 40
_RATE = 5.0
_TRANSIENT = 1


def inject(fault: Fault) -> None:
    """Keep a constant backlog of transient messages."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("fault-pub-transient-in-durable").channel()
    publisher.confirm_delivery()
    properties = BasicProperties(delivery_mode=_TRANSIENT)
    for _ in range(_BACKLOG):
        publisher.basic_publish("", QUEUE, b"transient", properties)
    consumer = fault.connect("fault-pub-transient-in-durable-consumer").channel()

    held: list[int] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer.basic_qos(prefetch_count=2)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-pub-transient-in-durable")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publisher.basic_publish("", QUEUE, b"transient", properties)
        # One ack per publish, so that the backlog stays constant.
        if held:
            consumer.basic_ack(held.pop(0))
        if not announced:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="pub-transient-in-durable",
    rule="pub-transient-in-durable",
    summary="about 40 transient messages wait in a durable queue: a restart would lose them",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
    also=("slow-consumer",),
)
