"""stream-unbounded: a stream without retention gets 2 MB a second."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

STREAM = "fault.stream-unbounded"
_SEGMENT, _BYTES, _RATE, _SECONDS = 4_000_000, 20_000, 100, 600


def inject(fault: Fault) -> None:
    """Publish 100 messages of 20 kB a second, for at most ten minutes."""
    fault.make_queue(STREAM, {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": _SEGMENT})
    channel = writer(fault, STREAM)
    for number, _ in enumerate(fault.ticks(0.1)):
        if number < 10 * _SECONDS:
            publish(channel, STREAM, _RATE // 10, body=b"x" * _BYTES)
        if number == 20:
            fault.announce()


SPEC = FaultSpec(
    name="stream-unbounded",
    rule="stream-unbounded",
    summary="a stream without retention gets 2 MB a second",
    subject=Subject(kind="queue", name=STREAM),
    inject=inject,
    also=("disk-trending-full",),
)
