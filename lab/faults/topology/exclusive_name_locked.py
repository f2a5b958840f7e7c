"""exclusive-name-locked: an application declares an exclusive queue whose name another connection holds.

The broker answers 405 RESOURCE_LOCKED and closes the channel.
Source: https://www.rabbitmq.com/docs/queues#exclusive-queues
"""

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.faults.clients.again import refused
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.exclusive-name-locked"
_REFUSED = 405


def inject(fault: Fault) -> None:
    """Hold the queue on one connection; declare it on another one four times a second."""
    holder = fault.connect("fault-exclusive-name-locked-holder").channel()
    holder.queue_declare(QUEUE, exclusive=True)

    def declare(channel: BlockingChannel) -> None:
        channel.queue_declare(QUEUE, exclusive=True)

    refused(fault, "fault-exclusive-name-locked", _REFUSED, declare)


SPEC = FaultSpec(
    name="exclusive-name-locked",
    rule="exclusive-name-locked",
    summary="a client declares a queue that is exclusive to another connection and is refused four times a second",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    apart=True,
)
