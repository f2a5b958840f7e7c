"""Long jobs, one at a time: a consumer with prefetch 1 that acks when a job is done."""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.long-jobs"
_JOB = 25.0


def inject(fault: Fault) -> None:
    """Run jobs of 25 s; publish a new one when one is done."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-jobs-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("decoy-jobs-worker").channel()
    held: list[tuple[int, float]] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append((method.delivery_tag, time.monotonic()))

    consumer.basic_qos(prefetch_count=1)
    consumer.basic_consume(QUEUE, take)
    publish(publisher, QUEUE)
    announced = False
    for _ in fault.ticks(0.2):
        if held and not announced:
            fault.announce()
            announced = True
        if held and time.monotonic() - held[0][1] >= _JOB:
            publish(publisher, QUEUE)
            consumer.basic_ack(held.pop()[0])


SPEC = FaultSpec(
    name="decoy.long-jobs",
    rule="",
    summary="a consumer with prefetch 1 takes 25 s per job, without a backlog",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
