"""A client that polls a batch, works on it for some seconds, and acknowledges it at once."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.polling-batches"
_RATE, _BATCH, _WORK = 4.0, 20, 8


def inject(fault: Fault) -> None:
    """Publish at a constant rate; poll until the batch is full or the queue is empty, every 8 s."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    publisher = fault.connect("decoy-polling-batches-publisher").channel()
    publisher.confirm_delivery()
    poller = fault.connect("decoy-polling-batches").channel()
    polled = 0
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, QUEUE)
        if number % (_WORK * _RATE):
            continue
        if polled:
            poller.basic_ack(0, multiple=True)
        polled = 0
        while polled < 2 * _BATCH and poller.basic_get(QUEUE)[0] is not None:
            polled += 1
        if number == _WORK * _RATE:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.polling-batches",
    rule="",
    summary="a client polls a batch every 8 s and acknowledges it when it is done",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
