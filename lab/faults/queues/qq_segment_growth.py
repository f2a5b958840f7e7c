"""qq-segment-growth: a consumer holds one message of a quorum queue, while large ones pass it by way of another.

Up to 4.2; in 4.3 a message that is held pins no others any more.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.qq-segment-growth"
_RATE, _BYTES, _PROOF = 18.0, 900_000, 20


def inject(fault: Fault) -> None:
    """Sixteen MB a second pass the queue; its first message stays."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channel = writer(fault, QUEUE)
    reader(fault, QUEUE, every=1.0, prefetch=1)
    # This consumer never acks.
    body = b"x" * _BYTES
    publish(channel, QUEUE, body=body)
    worker = reader(fault, QUEUE, every=0.01, prefetch=20)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE, body=body)
        worker.work()
        if not announced and worker.acked >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="qq-segment-growth",
    rule="qq-segment-growth",
    summary="a consumer holds one message of a quorum queue while 16 MB/s pass through: its log cannot be truncated",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("3.10", "4.0"),
    also=("quorum-queue-without-dlx",),
    one_shot=False,
)
