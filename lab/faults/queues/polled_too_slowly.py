"""Form of queue-overload: a job polls a queue (basic.get) more slowly than messages arrive; it has no consumer.

Source: https://www.rabbitmq.com/docs/consumers#polling
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.polled-too-slowly"
_RATE, _TAKE_EACH = 3.0, 4
_PROOF_SECONDS = 45.0
"""Seconds of growth before it counts as a fault: a job that begins to poll is behind for a short time."""


def inject(fault: Fault) -> None:
    """Publish 3 messages a second, and take one of four."""
    fault.make_queue(QUEUE)
    channel, poller = publisher(fault, f"{QUEUE}-publisher"), fault.connect("fault-polled-too-slowly").channel()
    until, announced = time.monotonic() + _PROOF_SECONDS, False
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if number % _TAKE_EACH == 0:
            method, _properties, _body = poller.basic_get(QUEUE)
            if method is not None:
                poller.basic_ack(method.delivery_tag)
        if not announced and time.monotonic() >= until:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="polled-too-slowly",
    rule="queue-overload",
    summary="a job takes fewer messages from a queue (basic.get) than arrive, and nobody consumes from it",
    subject=Subject(kind="queue", name=QUEUE),
    client="fault-polled-too-slowly",
    inject=inject,
    one_shot=False,
)
