"""bad-ack-loop: a consumer acks an unknown delivery tag, loses its channel (406), and opens another one.

Source: https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking
"""

from contextlib import suppress
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.bad-ack-loop"
PREFETCH = 5
_RATE = 4.0
_PROOF = 5
_NO_SUCH_TAG = 999


def inject(fault: Fault) -> None:
    """Consume, ack the delivery tag 999, and repeat this on the next channel."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-bad-ack-loop-publisher")
    publish(channel, QUEUE, 2 * PREFETCH)
    connection = fault.connect("fault-bad-ack-loop")
    consumer: BlockingChannel | None = None
    closed, announced = 0, False

    def take(inner: BlockingChannel, _method: Any, _properties: Any, _body: bytes) -> None:
        if inner.is_open:
            with suppress(ChannelClosedByBroker):
                inner.basic_ack(_NO_SUCH_TAG)

    for _ in fault.ticks(1 / _RATE):
        if consumer is None or not consumer.is_open:
            closed += consumer is not None
            consumer = connection.channel()
            consumer.basic_qos(prefetch_count=PREFETCH)
            consumer.basic_consume(QUEUE, take)
        if not announced and closed >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="bad-ack-loop",
    rule="bad-ack-loop",
    summary="a consumer acks an unknown delivery tag, loses its channel and opens another one, 4 times a second",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    also=("channel-churn",),
    one_shot=False,
)
