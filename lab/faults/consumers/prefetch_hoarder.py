"""prefetch-hoarder: a consumer without a prefetch limit holds 1500 messages; a second one gets nothing."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.prefetch-hoarder"
MESSAGES = 1500


def inject(fault: Fault) -> None:
    """Let one consumer receive all messages, then start another one."""
    fault.make_queue(QUEUE)
    publish(publisher(fault, "fault-prefetch-hoarder-publisher"), QUEUE, MESSAGES)
    held: list[int] = []

    def hoard(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)

    hoarder = fault.connect("fault-prefetch-hoarder").channel()
    hoarder.basic_consume(QUEUE, hoard, consumer_tag="fault-prefetch-hoarder")
    announced = False
    for _ in fault.ticks(0.2):
        if not announced and len(held) == MESSAGES:
            other = fault.connect("fault-prefetch-hoarder-starved").channel()
            other.basic_qos(prefetch_count=10)
            other.basic_consume(QUEUE, take, consumer_tag="fault-prefetch-hoarder-starved")
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="prefetch-hoarder",
    rule="prefetch-hoarder",
    summary="a consumer without prefetch limit holds all 1,500 messages, and a second consumer gets none",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
