"""queue-purged: a backlog that nobody consumes is purged.

Source: https://www.rabbitmq.com/docs/queues
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.queue-purged"
MESSAGES = 300
_SETTLED = 16
"""Seconds until the statistics show the backlog in two polls."""


def inject(fault: Fault) -> None:
    """Publish a backlog, purge it after 16 s, and publish one message a second from then on."""
    fault.make_queue(QUEUE)
    channel = writer(fault, QUEUE)
    publish(channel, QUEUE, MESSAGES)
    for second, _ in enumerate(fault.ticks(1.0)):
        if second == _SETTLED:
            channel.queue_purge(QUEUE)
            fault.announce()
        if second > _SETTLED:
            publish(channel, QUEUE)


SPEC = FaultSpec(
    name="queue-purged",
    rule="queue-purged",
    summary="300 messages are purged from a queue",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("no-consumer", "orphan-queue"),
    one_shot=False,
)
