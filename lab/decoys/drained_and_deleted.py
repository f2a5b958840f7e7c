"""Queues for one batch each: filled, consumed to the end, and deleted by their consumer."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

_NAME = "fault.decoy.batch"
_MESSAGES, _PER_TICK, _TICKS = 400, 20, 25


def inject(fault: Fault) -> None:
    """Every 25 s, fill a new durable queue with 400 messages, take 20 a second, and delete it when it is empty."""
    channel = fault.connect("decoy-drained-and-deleted").channel()
    name = ""
    for number, _ in enumerate(fault.ticks(1.0)):
        if number % _TICKS == 0:
            if name:
                channel.queue_delete(name)
            name = f"{_NAME}.{number // _TICKS}"
            fault.make_queue(name)
            publish(channel, name, _MESSAGES)
        for _ in range(_PER_TICK):
            method, _, _ = channel.basic_get(name)
            if method:
                channel.basic_ack(method.delivery_tag)
        if number == _TICKS + 5:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.drained-and-deleted",
    rule="",
    summary="a queue for each batch is consumed to the end and then deleted",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
)
