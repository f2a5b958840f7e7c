"""declare-mismatch: an application repeatedly declares an existing queue with different arguments.

The broker answers 406 PRECONDITION_FAILED and closes the channel.
Source: https://www.rabbitmq.com/docs/queues#property-equivalence
"""

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.faults.clients.again import refused
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.declare-mismatch"
_REFUSED = 406


def inject(fault: Fault) -> None:
    """Declare the queue with a message TTL that it does not have, four times a second."""
    fault.make_queue(QUEUE)

    def declare(channel: BlockingChannel) -> None:
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "classic", "x-message-ttl": 60000})

    refused(fault, "fault-declare-mismatch", _REFUSED, declare)


SPEC = FaultSpec(
    name="declare-mismatch",
    rule="declare-mismatch",
    summary="an application declares an existing queue with a different TTL and is refused four times a second",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
)
