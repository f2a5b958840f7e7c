"""A client that polls messages (basic.get): the queue has no consumer, but its messages are processed."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.polling"
_GETS = 4


def inject(fault: Fault) -> None:
    """Publish two messages a second, and poll four times a second."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-polling-publisher").channel()
    publisher.confirm_delivery()
    poller = fault.connect("decoy-polling-client").channel()
    for number, _ in enumerate(fault.ticks(1 / _GETS)):
        if number % 2 == 0:
            publish(publisher, QUEUE)
        method, _properties, _body = poller.basic_get(QUEUE)
        if method is not None:
            poller.basic_ack(method.delivery_tag)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.polling",
    rule="",
    summary="a queue without consumers is emptied by basic.get",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
