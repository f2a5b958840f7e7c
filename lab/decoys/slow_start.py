"""A client that starts slowly: it adds one consumer a second to its channel until it has eight."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.slow-start"
_RATE, _CONSUMERS = 6.0, 8


def inject(fault: Fault) -> None:
    """Publish at a constant rate; subscribe again every second until all consumers are there."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-slow-start-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("decoy-slow-start").channel()
    consumer.basic_qos(prefetch_count=4)
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, QUEUE)
        if number % _RATE == 0 and number < _CONSUMERS * _RATE:
            consumer.basic_consume(QUEUE, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.slow-start",
    rule="",
    summary="a client subscribes eight times to its queue within eight seconds, and stays",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
