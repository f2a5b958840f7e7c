"""A health check that connects every two seconds, asks for the length of a queue that is consumed, and disconnects."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.health-checks"


def inject(fault: Fault) -> None:
    """Publish and consume one message a second, and check the queue from a new connection every two seconds."""
    fault.make_queue(QUEUE)
    consumer = fault.connect("decoy-health-checks-consumer").channel()
    consumer.basic_consume(QUEUE, lambda inner, method, _properties, _body: inner.basic_ack(method.delivery_tag))
    publisher = fault.connect("decoy-health-checks-publisher").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1)):
        publish(publisher, QUEUE)
        if number % 2:
            with fault.briefly("decoy-health-check") as channel:
                channel.queue_declare(QUEUE, passive=True)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.health-checks",
    rule="",
    summary="a health check connects and disconnects in a loop, and moves no message",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
