"""delay-queue-cycle through a work queue: what expires in it comes back through two delay queues, and is dropped."""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.expiring-circle"
_RATE, _TTL_MS, _WORK, _PROOF = 8.0, 2000, 0.4, 90


def inject(fault: Fault) -> None:
    """Publish more than the consumer processes within the TTL of the queue."""
    way = (QUEUE, f"{QUEUE}.wait", f"{QUEUE}.hold")
    for place, name in enumerate(way):
        following = way[(place + 1) % len(way)]
        arguments = {"x-message-ttl": _TTL_MS, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": following}
        fault.make_queue(name, arguments)
    channel = writer(fault, QUEUE)
    consumer = fault.connect("fault-expiring-circle").channel()
    consumer.basic_qos(prefetch_count=1)
    due: list[tuple[float, int]] = []

    def take(_inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        due.append((time.monotonic() + _WORK, method.delivery_tag))

    consumer.basic_consume(QUEUE, take)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        while due and due[0][0] <= time.monotonic():
            consumer.basic_ack(due.pop(0)[1])
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="expiring-circle",
    rule="delay-queue-cycle",
    summary="messages expire in a work queue, go through two delay queues, and are dropped when they come back",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("ttl-expiry-loss", "slow-consumer"),
    one_shot=False,
)
