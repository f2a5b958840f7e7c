"""auto-ack-consumer: a durable queue has a consumer with automatic acknowledgement."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.auto-ack-consumer"
_RATE = 10.0
_PROOF = 20


def inject(fault: Fault) -> None:
    """Publish ten messages a second, and consume them with automatic acknowledgement."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-auto-ack-consumer-publisher")
    consumer = fault.connect("fault-auto-ack-consumer").channel()
    received: list[int] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        received.append(method.delivery_tag)

    consumer.basic_consume(QUEUE, take, auto_ack=True, consumer_tag="fault-auto-ack-consumer")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and len(received) >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="auto-ack-consumer",
    rule="auto-ack-consumer",
    summary="a consumer of a durable queue acknowledges automatically",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
)
