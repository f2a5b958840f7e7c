"""prefetch-past-timeout: a consumer works all the time, and holds more than it can settle before the ack timeout.

The timeout is RabbitMQ's default of 30 min; the last of 1,000 messages waits for 42 min.
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.prefetch-past-timeout"
PREFETCH, _EVERY = 1000, 2.5
_PACED = 44
"""Acknowledgements until the pace is known, which takes two minutes."""


def inject(fault: Fault) -> None:
    """Hold 1,000 messages, acknowledge the oldest every 2.5 s, and publish another."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channel = publisher(fault, "fault-prefetch-past-timeout-publisher")
    publish(channel, QUEUE, PREFETCH)
    consumer = fault.connect("fault-prefetch-past-timeout").channel()
    held: list[int] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer.basic_qos(prefetch_count=PREFETCH)
    consumer.basic_consume(QUEUE, take)
    for done, _ in enumerate(fault.ticks(_EVERY)):
        if held:
            consumer.basic_ack(held.pop(0))
            publish(channel, QUEUE)
        if done == _PACED:
            fault.announce()


SPEC = FaultSpec(
    name="prefetch-past-timeout",
    rule="consumer-ack-timeout",
    summary="a consumer with prefetch 1000 acknowledges every 2.5 s, so that messages wait longer than the ack timeout",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("prefetch-hoarder", "slow-consumer", "stuck-consumer"),
    one_shot=False,
)
