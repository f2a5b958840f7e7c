"""Batches: a consumer that acknowledges a hundred messages at once, and one that acknowledges every 20 s."""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE, TIMED = "fault.decoy.batches", "fault.decoy.batches.timed"
_BATCH, _SECONDS = 100, 20.0
_RATE = 6.0


def inject(fault: Fault) -> None:
    """Publish steadily to both queues; acknowledge one by number and one by time."""
    publisher = fault.connect("decoy-batches-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("decoy-batches").channel()
    consumer.basic_qos(prefetch_count=3 * _BATCH)
    counts = {QUEUE: 0, TIMED: 0}
    latest: dict[str, int] = {}

    def take(queue: str) -> Any:
        def _take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
            counts[queue] += 1
            latest[queue] = method.delivery_tag

        return _take

    timed = fault.connect("decoy-batches-timed").channel()
    for queue, channel in ((QUEUE, consumer), (TIMED, timed)):
        fault.make_queue(queue)
        channel.basic_consume(queue, take(queue))
    fault.announce()
    since = time.monotonic()
    for _ in fault.ticks(1 / _RATE):
        publish(publisher, QUEUE)
        publish(publisher, TIMED)
        if counts[QUEUE] >= _BATCH:
            consumer.basic_ack(latest[QUEUE], multiple=True)
            counts[QUEUE] = 0
        if time.monotonic() - since >= _SECONDS and TIMED in latest:
            timed.basic_ack(latest[TIMED], multiple=True)
            since = time.monotonic()


SPEC = FaultSpec(
    name="decoy.batches",
    rule="",
    summary="two consumers acknowledge in batches: one every hundred messages, one every 20 s without a prefetch limit",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
