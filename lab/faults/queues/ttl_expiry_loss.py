"""ttl-expiry-loss: messages expire after 0.5 s; eight a second are published, and the consumer acks two a second.

Source: https://www.rabbitmq.com/docs/ttl
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.ttl-expiry-loss"
TTL_MS = 500
_RATE, _TAKE_EVERY, _PROOF = 8.0, 0.5, 24


def inject(fault: Fault) -> None:
    """Publish four times as fast as the consumer acks."""
    fault.make_queue(QUEUE, {"x-message-ttl": TTL_MS})
    channel, taker = writer(fault, QUEUE), reader(fault, QUEUE, every=_TAKE_EVERY, prefetch=1)
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        taker.work()
        # The queue holds the messages of the last half second; the other missing ones have expired.
        if not announced and sent > taker.acked + 1 + _RATE + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="ttl-expiry-loss",
    rule="ttl-expiry-loss",
    summary="messages expire after 500 ms, most of them before they are delivered",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
