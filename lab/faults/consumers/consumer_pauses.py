"""consumer-pauses: a handler waits for a lock that somebody else takes for 24 s of every 34 s."""

import time
from collections import deque
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.consumer-pauses"
_PREFETCH = 8
_WORKS, _WAITS = 10.0, 24.0
_TICK, _PUBLISHED, _HANDLED = 0.25, 1, 4
"""Seconds between two steps, and messages of each: it handles 16/s while it works, and 4/s are published."""
_TIMES = 2


def inject(fault: Fault) -> None:
    """Publish at a constant rate, and acknowledge four times as many a second in a part of the time."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-consumer-pauses-publisher")
    consumer = fault.connect("fault-consumer-pauses").channel()
    held: deque[int] = deque()

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer.basic_qos(prefetch_count=_PREFETCH)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-consumer-pauses")
    began, announced = time.monotonic(), False
    for _ in fault.ticks(_TICK):
        publish(channel, QUEUE, _PUBLISHED)
        rounds, phase = divmod(time.monotonic() - began, _WORKS + _WAITS)
        for _ in range(_HANDLED if phase < _WORKS else 0):
            if held:
                consumer.basic_ack(held.popleft())
        if not announced and rounds >= _TIMES:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="consumer-pauses",
    rule="consumer-pauses",
    summary="a handler waits 24 s for a lock, works for 10 s, and waits again, with a prefetch of 8",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("stuck-consumer",),
)
