"""delay-queue-cycle: a delay queue dead-letters to another one and that one back, so what expires is dropped.

Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.delay-queue-cycle"
OTHER = "fault.delay-queue-cycle.other"
_RATE, _TTL_MS, _PROOF = 10.0, 1000, 60


def inject(fault: Fault) -> None:
    """Publish to the first of the two."""
    for name, to in ((QUEUE, OTHER), (OTHER, QUEUE)):
        arguments = {"x-message-ttl": _TTL_MS, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
        fault.make_queue(name, arguments)
    channel = writer(fault, QUEUE)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="delay-queue-cycle",
    rule="delay-queue-cycle",
    summary="two delay queues dead-letter to each other, and no consumer takes messages out",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
