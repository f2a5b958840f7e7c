"""sac-stuck: the single active consumer of three holds its prefetch and sends no acks.

Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.sac-stuck"
PREFETCH = 10
_RATE = 5.0


def inject(fault: Fault) -> None:
    """Let the first consumer hold ten messages, with two healthy consumers on standby."""
    fault.make_queue(QUEUE, {"x-single-active-consumer": True})
    channel = publisher(fault, "fault-sac-stuck-publisher")
    held: list[int] = []

    def hold(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    for name, handle in (("active", hold), ("standby-1", take), ("standby-2", take)):
        consumer = fault.connect(f"fault-sac-stuck-{name}").channel()
        consumer.basic_qos(prefetch_count=PREFETCH)
        consumer.basic_consume(QUEUE, handle, consumer_tag=f"fault-sac-stuck-{name}")
    publish(channel, QUEUE, 2 * PREFETCH)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and len(held) == PREFETCH:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="sac-stuck",
    rule="sac-stuck",
    summary="the single active consumer holds its prefetch of 10 without an ack; two healthy standbys wait",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
