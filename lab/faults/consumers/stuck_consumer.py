"""stuck-consumer: a consumer that first works, then holds its whole prefetch and sends no more acks.

Its connection stays healthy, because the client library answers heartbeats.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.stuck-consumer"
PREFETCH = 10
_WORKED = 15
_RATE = 5.0


def inject(fault: Fault) -> None:
    """Publish at a constant rate; consume, ack the first messages, then hold."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("fault-stuck-consumer-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("fault-stuck-consumer").channel()
    acked: list[int] = []
    held: list[int] = []

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        if len(acked) < _WORKED:
            acked.append(method.delivery_tag)
            channel.basic_ack(method.delivery_tag)
        else:
            held.append(method.delivery_tag)

    consumer.basic_qos(prefetch_count=PREFETCH)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-stuck-consumer")
    # Publish these at once, so that the consumer reaches its prefetch quickly.
    early, announced = _WORKED + PREFETCH, False
    for _ in range(early):
        _publish(publisher)
    for _ in fault.ticks(1 / _RATE):
        _publish(publisher)
        if not announced and len(held) == PREFETCH:
            fault.announce()
            announced = True


def _publish(channel: BlockingChannel) -> None:
    channel.basic_publish("", QUEUE, b"stuck-consumer", BasicProperties(delivery_mode=PERSISTENT))


SPEC = FaultSpec(
    name="stuck-consumer",
    rule="stuck-consumer",
    summary="a consumer stops sending acks with its prefetch of 10 outstanding; publishing continues at 5 messages/s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
