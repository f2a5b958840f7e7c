"""stream-reader-unserved: the publisher of a stream sets no filter value any more, and the reader asks for one.

Source: https://www.rabbitmq.com/docs/streams#filtering
"""

import time

from pika import BasicProperties

from ackscope.findings import Subject
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import Reader

STREAM = "fault.stream-unserved"
_RATE, _SERVED, _PROOF = 10.0, 20.0, 35.0
"""Messages per second, seconds with a filter value, and seconds without one until the fault is in effect."""


def inject(fault: Fault) -> None:
    """Publish with the filter value of the reader, then without."""
    fault.make_queue(STREAM, {"x-queue-type": "stream", "x-max-age": "1h"})
    channel = publisher(fault, "fault-stream-unserved-publisher")
    reader = Reader(fault.connect("fault-stream-unserved").channel(), 0.001)
    reader.channel.basic_qos(prefetch_count=50)
    reader.channel.basic_consume(STREAM, reader.take, arguments={"x-stream-offset": "first", "x-stream-filter": "eu"})
    began, announced = time.monotonic(), False
    for _ in fault.ticks(1 / _RATE):
        seconds = time.monotonic() - began
        headers = {"x-stream-filter-value": "eu"} if seconds < _SERVED else None
        channel.basic_publish("", STREAM, b"x" * 200, BasicProperties(headers=headers))
        reader.work()
        if not announced and seconds > _SERVED + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="stream-reader-unserved",
    rule="stream-reader-unserved",
    summary="a reader of a stream asks for a filter value that the publisher does not set any more",
    subject=Subject(kind="queue", name=STREAM),
    inject=inject,
    client="fault-stream-unserved",
    brokers=("4.0", "4.3"),
    one_shot=False,
)
