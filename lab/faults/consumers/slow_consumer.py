"""slow-consumer: a consumer that takes 0.2 s per message, with twice that publish rate."""

from collections import deque
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.slow-consumer"
PREFETCH = 10
_SECONDS = 0.2
_EACH = 2
_PROOF = 10


def inject(fault: Fault) -> None:
    """Every 0.2 s, publish two messages and ack the oldest one."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-slow-consumer-publisher")
    consumer = fault.connect("fault-slow-consumer").channel()
    held: deque[int] = deque()

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer.basic_qos(prefetch_count=PREFETCH)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-slow-consumer")
    publish(channel, QUEUE, 3 * PREFETCH)
    acked, announced = 0, False
    for _ in fault.ticks(_SECONDS):
        publish(channel, QUEUE, _EACH)
        if held:
            consumer.basic_ack(held.popleft())
            acked += 1
        if not announced and acked >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="slow-consumer",
    rule="slow-consumer",
    summary="a consumer with prefetch 10 processes 5 messages/s, and 10/s are published",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
