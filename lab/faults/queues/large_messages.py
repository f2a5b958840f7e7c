"""large-messages: a queue that holds ten messages of 2 MiB each."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.large-messages"
MESSAGES, BYTES = 10, 2 * 1_048_576


def inject(fault: Fault) -> None:
    """Publish the messages, and leave them in the queue."""
    fault.make_queue(QUEUE)
    channel = writer(fault, QUEUE)
    for _ in range(MESSAGES):
        publish(channel, QUEUE, body=b"x" * BYTES)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="large-messages",
    rule="large-messages",
    summary="a queue holds 10 messages of 2 MiB",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    also=("no-consumer",),
)
