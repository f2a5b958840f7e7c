"""stale-head: one of two consumers holds the oldest message, while the other processes all later ones.

Publishers set the property `timestamp`, from which the age is known.
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.stale-head"
_RATE, _PROOF = 10.0, 30


def inject(fault: Fault) -> None:
    """Let the first consumer hold one message; then publish and let the second consumer work."""
    fault.make_queue(QUEUE)
    channel = writer(fault, QUEUE)
    reader(fault, QUEUE, every=1.0, prefetch=1)
    # This consumer never acks.
    publish(channel, QUEUE, timestamp=int(time.time()))
    worker = reader(fault, QUEUE, every=0.01, prefetch=20)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE, timestamp=int(time.time()))
        worker.work()
        if not announced and worker.acked >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="stale-head",
    rule="stale-head",
    summary="one consumer holds the oldest message of a queue while another one processes all later messages",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
