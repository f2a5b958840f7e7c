"""deprecated-features-used: an application uses a queue that is neither durable nor exclusive."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.deprecated-features-used"


def inject(fault: Fault) -> None:
    """Declare such a queue; RabbitMQ 4.3 permits it by default."""
    fault.make_queue(QUEUE, durable=False)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="deprecated-features-used",
    rule="deprecated-features-used",
    summary="a queue is neither durable nor exclusive, which later versions refuse",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("4.0", "4.3"),
)
