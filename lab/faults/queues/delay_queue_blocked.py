"""delay-queue-blocked: a message with a TTL of an hour holds back those of 2 s behind it, and the queue behind starves.

Source: https://www.rabbitmq.com/docs/ttl#per-message-ttl-caveats
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.delay-queue-blocked"
DUE = "fault.delay-queue-blocked.due"
_RATE, _TTL_MS, _LONG_MS = 10.0, 2000, 3_600_000
_FLOWS, _PROOF = 15.0, 35.0
"""Seconds for which messages leave, and for which none has left when the fault is in effect."""


def inject(fault: Fault) -> None:
    """Let messages expire into a consumed queue for a while, then publish the long one."""
    fault.make_queue(DUE)
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DUE})
    channel, worker = writer(fault, QUEUE), reader(fault, DUE, every=0.001, prefetch=50)
    began = time.monotonic()
    blocked = announced = False
    for _ in fault.ticks(1 / _RATE):
        seconds = time.monotonic() - began
        if not blocked and seconds > _FLOWS:
            publish(channel, QUEUE, expiration=str(_LONG_MS))
            blocked = True
        publish(channel, QUEUE, expiration=str(_TTL_MS))
        worker.work()
        if not announced and seconds > _FLOWS + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="delay-queue-blocked",
    rule="delay-queue-blocked",
    summary="a message with a TTL of an hour is at the head of a delay queue, before messages of 2 s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
