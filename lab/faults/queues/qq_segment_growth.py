"""qq-segment-growth: a consumer holds one message of a quorum queue, while another one processes large messages.

Up to 4.2; from 4.3 on, a held message no longer keeps later ones on disk.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.qq-segment-growth"
_RATE, _BYTES, _PROOF = 18.0, 900_000, 20


def inject(fault: Fault) -> None:
    """Publish and process 16 MB a second, while the first message stays unacked."""
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
