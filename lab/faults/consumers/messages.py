"""Helpers of consumer faults: publishing with confirms, and the backlog of a queue."""

from collections.abc import Callable
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.amqp import publish
from lab.faults.fault import Fault

_RATE, _PROOF = 8.0, 20


def publisher(fault: Fault, name: str) -> BlockingChannel:
    """Return a channel in confirm mode on a new connection."""
    channel = fault.connect(name).channel()
    channel.confirm_delivery()
    return channel


def settle_all(fault: Fault, queue: str, settle: Callable[[BlockingChannel, int], object]) -> None:
    """Publish 8 messages a second to a queue whose consumer settles each in one way, until the fault ends.

    Announces the fault once 20 messages were settled.
    """
    name = queue.replace("fault.", "fault-")
    channel, consumer = publisher(fault, f"{name}-publisher"), fault.connect(name).channel()
    settled = 0

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal settled
        settle(inner, method.delivery_tag)
        settled += 1

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(queue, take, consumer_tag=name)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, queue)
        if not announced and settled >= _PROOF:
            fault.announce()
            announced = True


def ready(channel: BlockingChannel, queue: str) -> int:
    """Return the number of ready messages of a queue now."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)
