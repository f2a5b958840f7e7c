"""Queues that hold messages by design: a delay with the messages' own TTL, and telemetry that expires unread."""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE, DUE, TELEMETRY = "fault.decoy.delays", "fault.decoy.delays.due", "fault.decoy.delays.latest"
_RATE, _TTL_MS = 5.0, 12_000


def inject(fault: Fault) -> None:
    """Publish to both at a steady rate; the consumer acks what is due at once."""
    fault.make_queue(DUE)
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DUE})
    fault.make_queue(TELEMETRY, {"x-message-ttl": _TTL_MS})
    channel, worker = writer(fault, QUEUE), reader(fault, DUE, every=0.001, prefetch=50)
    began = time.monotonic()
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE, expiration=str(_TTL_MS))
        publish(channel, TELEMETRY)
        worker.work()
        if not announced and time.monotonic() - began > 2 * _TTL_MS / 1000:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="decoy.delays",
    rule="",
    summary="messages wait 12 s in a delay queue by their own TTL, and telemetry expires unread by that of its queue",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
