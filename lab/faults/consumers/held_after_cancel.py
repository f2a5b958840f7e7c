"""held-after-cancel: a client cancels and consumes again on one channel, and settles only some of what it got."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.held-after-cancel"
PREFETCH = 10
_ACKED = 4
_RATE = 5.0
_ROUND = 15


def inject(fault: Fault) -> None:
    """Each round, acknowledge four messages, cancel, and consume again."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-held-after-cancel-publisher")
    consumer = fault.connect("fault-held-after-cancel").channel()
    consumer.basic_qos(prefetch_count=PREFETCH)
    received: list[int] = []

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        received.append(method.delivery_tag)
        if len(received) <= _ACKED:
            inner.basic_ack(method.delivery_tag)

    publish(channel, QUEUE, 5 * PREFETCH)
    tag = consumer.basic_consume(QUEUE, take)
    for number, _ in enumerate(fault.ticks(1 / _RATE), 1):
        publish(channel, QUEUE)
        if number % _ROUND == 0:
            consumer.basic_cancel(tag)
            received.clear()
            tag = consumer.basic_consume(QUEUE, take)
        if number == 3 * _ROUND:
            fault.announce()


SPEC = FaultSpec(
    name="held-after-cancel",
    rule="held-after-cancel",
    summary="a client with prefetch 10 cancels and consumes again on one channel, and leaves six messages each time",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("consumer-flapping",),
)
