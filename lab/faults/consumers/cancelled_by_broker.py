"""no-consumer with a connected client: its queue is deleted and declared again, and it ignores the cancellation."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.cancelled-by-broker"
_RATE, _DELETED_AT = 5.0, 40


def inject(fault: Fault) -> None:
    """Publish at a constant rate to the default exchange; after some seconds the queue is another one."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-cancelled-by-broker-publisher")
    consume(fault.connect("fault-cancelled-by-broker"), QUEUE)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if sent == _DELETED_AT:
            fault.make_queue(QUEUE)
            fault.announce()


SPEC = FaultSpec(
    name="cancelled-by-broker",
    rule="no-consumer",
    summary="a queue is deleted and declared again, and its consumer stays connected without a consumer",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
