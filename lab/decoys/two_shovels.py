"""Two shovels that share the work: both take from one queue, so each message is moved once."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.cluster.shovels import PLUGINS, shovel
from lab.faults.fault import Fault, FaultSpec

_NAME = "fault.decoy.two-shovels"
_TARGET = f"{_NAME}.target"


def inject(fault: Fault) -> None:
    """Move five messages a second to a consumed queue."""
    fault.make_queue(_NAME)
    fault.make_queue(_TARGET)
    consumer = fault.connect("decoy-two-shovels-consumer").channel()
    consumer.basic_consume(_TARGET, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    for name in (_NAME, f"{_NAME}.other"):
        shovel(fault, name, _NAME, _TARGET)
    publisher = fault.connect("decoy-two-shovels").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / 5)):
        publish(publisher, _NAME)
        if number == 20:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.two-shovels",
    rule="",
    summary="two shovels take from the same queue and share its messages",
    subject=Subject(kind="link", name=_NAME),
    inject=inject,
    extra=PLUGINS,
)
