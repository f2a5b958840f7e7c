"""priority-without-effect: a consumer with a large prefetch holds 40 s of work of a queue with priorities."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.priority-without-effect"
_AHEAD, _RATE = 400, 8.0


def inject(fault: Fault) -> None:
    """Let the consumer receive a backlog in advance, and work off as many messages as are published."""
    fault.make_queue(QUEUE, arguments={"x-max-priority": 9})
    channel = publisher(fault, "fault-priority-without-effect-publisher")
    publish(channel, QUEUE, _AHEAD)
    held: list[int] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer = fault.connect("fault-priority-without-effect").channel()
    consumer.basic_qos(prefetch_count=_AHEAD)
    consumer.basic_consume(QUEUE, take)
    announced = False
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE, priority=9 if number % 8 == 0 else 0)
        if held:
            consumer.basic_ack(held.pop(0))
            if not announced:
                fault.announce()
                announced = True


SPEC = FaultSpec(
    name="priority-without-effect",
    rule="priority-without-effect",
    summary="a consumer holds 40 s of work of a queue with priorities, so urgent messages wait behind it",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
