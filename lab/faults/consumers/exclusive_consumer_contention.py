"""exclusive-consumer-contention: a standby tries to consume from a queue with an exclusive consumer (403).

Source: https://www.rabbitmq.com/docs/consumers#exclusivity
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.exclusive-consumer-contention"
_RATE = 5.0
_PROOF = 5


def inject(fault: Fault) -> None:
    """Consume exclusively on one connection, and try repeatedly on another one."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-exclusive-consumer-contention-publisher")
    holder = fault.connect("fault-exclusive-consumer-contention-holder").channel()

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    holder.basic_qos(prefetch_count=10)
    holder.basic_consume(QUEUE, take, exclusive=True, consumer_tag="fault-exclusive-holder")
    standby = fault.connect("fault-exclusive-consumer-contention")
    refused, announced = 0, False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        try:
            standby.channel().basic_consume(QUEUE, take)
        except ChannelClosedByBroker:
            refused += 1
        if not announced and refused >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="exclusive-consumer-contention",
    rule="exclusive-consumer-contention",
    summary="a standby tries 5 times a second to consume from a queue with an exclusive consumer",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    apart=True,
    also=("channel-churn",),
    one_shot=False,
)
