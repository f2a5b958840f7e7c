"""ttl-expiry-loss: messages expire after 0.5 s; eight a second are published, and the consumer acks two a second.

Source: https://www.rabbitmq.com/docs/ttl
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE, ZERO = "fault.ttl-expiry-loss", "fault.ttl-of-zero"
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


def _of_zero(fault: Fault) -> None:
    """Publish to a queue without a consumer whose messages live for no time."""
    fault.make_queue(ZERO, {"x-message-ttl": 0})
    channel = writer(fault, ZERO)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, ZERO)
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="ttl-expiry-loss",
    rule="ttl-expiry-loss",
    summary="messages expire after 500 ms, most of them before they are delivered",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)

OF_ZERO = FaultSpec(
    name="ttl-of-zero",
    rule="ttl-expiry-loss",
    summary="a queue without a consumer has a TTL of 0, so that each message expires when it arrives",
    subject=Subject(kind="queue", name=ZERO),
    inject=_of_zero,
)
