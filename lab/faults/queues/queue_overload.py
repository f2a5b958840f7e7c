"""queue-overload: the publish rate rises from 8 to 30 messages a second; the consumer processes 10 a second."""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.queue-overload"
_BEFORE, _SURGE, _TAKE_EVERY = 8.0, 30.0, 0.1
_CALM_SECONDS, _PROOF = 12.0, 20
_TICK = 0.02


def inject(fault: Fault) -> None:
    """Publish for a while at a rate that the consumer can process, then far faster."""
    fault.make_queue(QUEUE)
    channel, taker = writer(fault, QUEUE), reader(fault, QUEUE, every=_TAKE_EVERY, prefetch=20)
    began, sent, announced = time.monotonic(), 0, False
    due = began
    for _ in fault.ticks(_TICK):
        now = time.monotonic()
        pace = _BEFORE if now - began < _CALM_SECONDS else _SURGE
        due = max(due, now - 1.0)
        while due <= now:
            publish(channel, QUEUE)
            sent += 1
            due += 1 / pace
        taker.work()
        if not announced and sent > taker.acked + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="queue-overload",
    rule="queue-overload",
    summary="the publish rate rises from 8 to 30 messages/s, and the consumer processes 10 messages/s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
