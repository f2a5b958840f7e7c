"""unreachable-queue: of two instances of a subscriber, one consumes from a queue that it did not bind."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

EXCHANGE = "fault.unreachable-queue"
CLIENT = "fault-unreachable-queue"
_RATE, _PROOF = 5.0, 5


def inject(fault: Fault) -> None:
    """Publish to a fanout exchange; declare, bind and consume in one instance, and all but the binding in the other."""
    fault.make_exchange(EXCHANGE, "fanout")
    for binds in (True, False):
        channel = fault.connect(CLIENT).channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        if binds:
            channel.queue_bind(queue, EXCHANGE)
        channel.basic_qos(prefetch_count=10)
        channel.basic_consume(queue, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    publisher = fault.connect(f"{CLIENT}-publisher").channel()
    publisher.confirm_delivery()
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publisher.basic_publish(EXCHANGE, "", b"unreachable-queue")
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="unreachable-queue",
    rule="unreachable-queue",
    summary="one of two instances of a subscriber consumes from a queue without a binding, and gets nothing",
    subject=Subject(kind="queue", name=""),
    client=CLIENT,
    inject=inject,
)
