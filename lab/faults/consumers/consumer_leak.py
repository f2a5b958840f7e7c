"""consumer-leak: a client subscribes to its queue again and again on one channel."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.consumer-leak"
_RATE, _EVERY, _PROOF = 6.0, 9, 60


def inject(fault: Fault) -> None:
    """Publish at a constant rate; add a consumer every 1.5 s. All of them acknowledge."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-consumer-leak-publisher")
    consumer = fault.connect("fault-consumer-leak").channel()
    consumer.basic_qos(prefetch_count=4)

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if sent % _EVERY == 0:
            consumer.basic_consume(QUEUE, take)
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="consumer-leak",
    rule="consumer-leak",
    summary="a client adds a consumer to its channel every 1.5 s and cancels none",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
