"""unacked-grows: a consumer acknowledges four of five messages, and never settles the fifth."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.unacked-grows"
_EVERY = 5
_RATE = 10.0


def inject(fault: Fault) -> None:
    """Publish at a constant rate; leave one of five unacknowledged."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channel = publisher(fault, "fault-unacked-grows-publisher")
    consumer = fault.connect("fault-unacked-grows").channel()
    consumer.basic_qos(prefetch_count=500)
    held: list[int] = []

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        if method.delivery_tag % _EVERY:
            inner.basic_ack(method.delivery_tag)
        else:
            held.append(method.delivery_tag)

    consumer.basic_consume(QUEUE, take)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and len(held) > _EVERY:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="unacked-grows",
    rule="unacked-grows",
    summary="a consumer of a quorum queue never settles one of five messages, with a prefetch of 500",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
