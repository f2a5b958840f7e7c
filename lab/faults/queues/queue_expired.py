"""queue-expired: a durable queue with messages is deleted after 10 s without a consumer (x-expires).

Source: https://www.rabbitmq.com/docs/ttl#queue-ttl
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.queue-expired"
_EXPIRES_MS, _MESSAGES, _PROOF = 10_000, 100, 12.0


def inject(fault: Fault) -> None:
    """Fill the queue and leave it alone."""
    fault.make_queue(QUEUE, {"x-expires": _EXPIRES_MS})
    publish(writer(fault, QUEUE), QUEUE, _MESSAGES)
    began = time.monotonic()
    announced = False
    for _ in fault.ticks(0.2):
        if not announced and time.monotonic() - began > _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="queue-expired",
    rule="queue-expired",
    summary="a queue with 100 messages and no consumer is deleted after 10 s, by x-expires",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
