"""A form of sac-stuck: a consumer of higher priority waits for one message that the active consumer does not settle.

A quorum queue then sends the active consumer nothing more, and the other one is not active yet (4.0 and later).
Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.sac-handover"
_PREFETCH, _FORGOTTEN, _SETTLED = 20, 3, 30
_RATE = 6.0


def inject(fault: Fault) -> None:
    """Let the old consumer work and forget its third message; then start the new one, with a higher priority."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-single-active-consumer": True})
    channel = publisher(fault, "fault-sac-handover-publisher")
    seen: list[int] = []

    def forget_one(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        seen.append(method.delivery_tag)
        if len(seen) != _FORGOTTEN:
            inner.basic_ack(method.delivery_tag)

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    def consume(name: str, handle: Any, priority: int) -> None:
        consumer = fault.connect(f"fault-sac-handover-{name}").channel()
        consumer.basic_qos(prefetch_count=_PREFETCH)
        consumer.basic_consume(QUEUE, handle, consumer_tag=name, arguments={"x-priority": priority})

    consume("old", forget_one, 0)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and len(seen) >= _SETTLED:
            consume("new", take, 10)
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="sac-handover",
    rule="sac-stuck",
    summary="one unsettled message keeps the consumer of higher priority from becoming the single active one",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    client="fault-sac-handover-old",
    brokers=("4.0", "4.3"),
)
