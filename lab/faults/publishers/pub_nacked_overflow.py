"""pub-nacked-overflow: a full queue rejects publishes, so the publisher gets nacks.

The queue has a slow consumer, so that the finding is the overflow and not a missing consumer.
Source: https://www.rabbitmq.com/docs/maxlength#overflow-behaviour
"""

import time
from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-nacked-overflow"
MAX_LENGTH = 10
_RATE = 8.0
_ACK_EVERY = 2.0
_PROOF = 5


def inject(fault: Fault) -> None:
    """Publish with confirms, far faster than the consumer acks."""
    fault.make_queue(QUEUE, {"x-max-length": MAX_LENGTH, "x-overflow": "reject-publish"})
    publisher = fault.connect("fault-pub-nacked-overflow").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("fault-pub-nacked-overflow-consumer").channel()
    held: list[tuple[int, float]] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append((method.delivery_tag, time.monotonic()))

    consumer.basic_qos(prefetch_count=1)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-pub-nacked-overflow-consumer")
    nacks, announced = 0, False
    for _ in range(MAX_LENGTH):
        nacks += not _confirmed(publisher)
    for _ in fault.ticks(1 / _RATE):
        nacks += not _confirmed(publisher)
        if held and time.monotonic() - held[0][1] > _ACK_EVERY:
            consumer.basic_ack(held.pop()[0])
        if not announced and nacks >= _PROOF:
            fault.announce()
            announced = True


def _confirmed(channel: BlockingChannel) -> bool:
    try:
        channel.basic_publish("", QUEUE, b"pub-nacked-overflow", BasicProperties(delivery_mode=PERSISTENT))
    except NackError:
        return False
    return True


SPEC = FaultSpec(
    name="pub-nacked-overflow",
    rule="pub-nacked-overflow",
    summary="a queue with a limit of 10 messages rejects publishes: the publisher gets nacks and continues",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
