"""A burst: the backlog grows, and the consumer drains it."""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.burst"
_BURST, _EVERY = 300, 30.0
_HANDLING = 0.02


def inject(fault: Fault) -> None:
    """Publish 300 messages every 30 s; the consumer takes 20 ms per message."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-burst-publisher").channel()
    consumer = fault.connect("decoy-burst-consumer").channel()

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        time.sleep(_HANDLING)
        channel.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=20)
    consumer.basic_consume(QUEUE, take)
    due = 0.0
    for _ in fault.ticks(0.1):
        if time.monotonic() >= due:
            publish(publisher, QUEUE, _BURST)
            if due == 0.0:
                fault.announce()
            due = time.monotonic() + _EVERY


SPEC = FaultSpec(
    name="decoy.burst",
    rule="",
    summary="a burst of 300 messages twice a minute, consumed within seconds",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
