"""pub-unroutable-dropped: an exchange loses its binding; its messages without mandatory are confirmed and dropped.

Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.unroutable import lose_binding

NAME = "fault.pub-unroutable-dropped"


def inject(fault: Fault) -> None:
    """Publish, unbind the queue, and continue to publish without mandatory."""
    lose_binding(fault, NAME, mandatory=False, rate=8.0)


SPEC = FaultSpec(
    name="pub-unroutable-dropped",
    rule="pub-unroutable-dropped",
    summary="an exchange loses its only binding: 8 messages/s are confirmed and dropped",
    subject=Subject(kind="exchange", name=NAME),
    inject=inject,
)
