"""ttl-expiry-loss: the consumer of a queue with a TTL and a dead-letter exchange leaves; messages expire unprocessed.

By its settings it is a delay queue; its counters show that it was consumed.
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.work-queue-expires"
FAILED = "fault.work-queue-expires.failed"
_RATE, _TTL_MS, _WORKS, _PROOF = 10.0, 5000, 8.0, 10.0


def inject(fault: Fault) -> None:
    """Consume for a while, then close the consumer's connection."""
    fault.make_queue(FAILED)
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": FAILED}
    fault.make_queue(QUEUE, {"x-message-ttl": _TTL_MS, **back})
    channel, worker = writer(fault, QUEUE), reader(fault, QUEUE, every=0.001, prefetch=50)
    began = time.monotonic()
    left = announced = False
    for _ in fault.ticks(1 / _RATE):
        seconds = time.monotonic() - began
        publish(channel, QUEUE)
        if not left:
            worker.work()
        if not left and seconds > _WORKS:
            worker.channel.close()
            left = True
        if not announced and seconds > _WORKS + _TTL_MS / 1000 + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="work-queue-expires",
    rule="ttl-expiry-loss",
    summary="the consumer of a queue with a TTL and a dead-letter exchange left, and its messages expire unprocessed",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("dlq-filling", "zombie-connection"),
)
