"""An alternate exchange as a route of its own: a consumer takes what no binding matches."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.pub_unroutable_alternate import keep_unroutable

QUEUE = "fault.decoy.or-else"


def inject(fault: Fault) -> None:
    """Publish three messages a second that only the alternate exchange routes, and consume them."""
    keep_unroutable(fault, QUEUE)
    consumer = fault.connect("decoy-or-else-consumer").channel()
    consumer.basic_consume(QUEUE, lambda inner, method, _properties, _body: inner.basic_ack(method.delivery_tag))
    publisher = fault.connect("decoy-or-else-publisher").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / 3)):
        publish(publisher, "other", exchange=QUEUE)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.or-else",
    rule="",
    summary="a consumer takes the messages that only an alternate exchange routes",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
