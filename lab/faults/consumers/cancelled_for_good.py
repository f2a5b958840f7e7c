"""cancelled-for-good: a client cancels its only consumer, keeps the channel open, and settles nothing."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.cancelled-for-good"
PREFETCH = 20


def inject(fault: Fault) -> None:
    """Take a full prefetch, cancel, and let another consumer work on."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-cancelled-for-good-publisher")
    held: list[int] = []

    def hold(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    publish(channel, QUEUE, 2 * PREFETCH)
    leaver = fault.connect("fault-cancelled-for-good").channel()
    leaver.basic_qos(prefetch_count=PREFETCH)
    tag = leaver.basic_consume(QUEUE, hold)
    cancelled = False
    for _ in fault.ticks(0.2):
        publish(channel, QUEUE)
        if not cancelled and len(held) == PREFETCH:
            leaver.basic_cancel(tag)
            worker = fault.connect("fault-cancelled-for-good-worker").channel()
            worker.basic_qos(prefetch_count=5)
            worker.basic_consume(QUEUE, take)
            fault.announce()
            cancelled = True


SPEC = FaultSpec(
    name="cancelled-for-good",
    rule="held-after-cancel",
    summary="a client cancels its consumer and keeps 20 messages on the open channel",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
