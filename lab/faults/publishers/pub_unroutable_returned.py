"""pub-unroutable-returned: an exchange loses its binding; its messages with mandatory are returned to the publisher.

Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.unroutable import lose_binding

NAME = "fault.pub-unroutable-returned"


def inject(fault: Fault) -> None:
    """Publish, unbind the queue, and continue to publish with mandatory."""
    lose_binding(fault, NAME, mandatory=True, rate=3.0)


SPEC = FaultSpec(
    name="pub-unroutable-returned",
    rule="pub-unroutable-returned",
    summary="an exchange loses its only binding: 3 messages/s are returned to a publisher that sets mandatory",
    subject=Subject(kind="exchange", name=NAME),
    inject=inject,
)
