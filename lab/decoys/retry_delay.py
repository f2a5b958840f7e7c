"""A delayed retry: a failed message waits in a queue without consumers, returns, and then succeeds."""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE, WAITING = "fault.decoy.retry-delay", "fault.decoy.retry-delay.later"
_DELAY_MS = 5000
_FAILS_EVERY = 5


def inject(fault: Fault) -> None:
    """Reject every fifth message once; it returns after 5 s and is acked."""
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WAITING})
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE, "x-message-ttl": _DELAY_MS}
    fault.make_queue(WAITING, back)
    publisher = fault.connect("decoy-retry-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("decoy-retry-consumer").channel()
    received = 0

    def take(channel: BlockingChannel, method: Any, properties: Any, _body: bytes) -> None:
        nonlocal received
        received += 1
        again = bool((properties.headers or {}).get("x-death"))
        if received % _FAILS_EVERY == 0 and not again:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, take)
    began = time.monotonic()
    announced = False
    for _ in fault.ticks(0.2):
        publish(publisher, QUEUE)
        if not announced and time.monotonic() - began > _DELAY_MS / 1000:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="decoy.retry-delay",
    rule="",
    summary="one message in five is retried after 5 s in a delay queue, and then succeeds",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
