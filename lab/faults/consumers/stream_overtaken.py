"""stream-retention-loss over AMQP 0-9-1: retention deletes messages before a slow reader gets them.

Source: https://www.rabbitmq.com/docs/streams#retention
"""

import time
from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

STREAM = "fault.stream-overtaken-amqp"
_RETAINED, _SEGMENT, _BYTES = 600_000, 150_000, 8_000
_RATE, _WORK, _AHEAD = 40.0, 0.15, 400


def inject(fault: Fault) -> None:
    """Publish six times as fast as the reader acknowledges."""
    arguments = {"x-queue-type": "stream", "x-max-length-bytes": _RETAINED, "x-stream-max-segment-size-bytes": _SEGMENT}
    fault.make_queue(STREAM, arguments)
    channel, read = publisher(fault, "fault-stream-overtaken-amqp-publisher"), 0

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal read
        read += 1
        time.sleep(_WORK)
        inner.basic_ack(method.delivery_tag)

    reader = fault.connect("fault-stream-overtaken-amqp").channel()
    reader.basic_qos(prefetch_count=1)
    reader.basic_consume(STREAM, take, arguments={"x-stream-offset": "first"})
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        channel.basic_publish("", STREAM, b"x" * _BYTES, BasicProperties())
        if not announced and sent - read >= _AHEAD:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="stream-overtaken-amqp",
    rule="stream-retention-loss",
    summary="a reader of a stream over AMQP 0-9-1 is so slow that retention deletes what it has not read",
    subject=Subject(kind="queue", name=STREAM),
    inject=inject,
    client="fault-stream-overtaken-amqp",
    also=("slow-consumer", "polling-consumer"),
    one_shot=False,
)
