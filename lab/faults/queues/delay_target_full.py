"""delay-target-full: eight messages a second expire into a full queue whose consumer acks one a second.

Source: https://www.rabbitmq.com/docs/maxlength#overflow-behaviour
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.delay-target-full"
DELAY = "fault.delay-target-full.wait"
_RATE, _TTL_MS, _LIMIT, _PROOF = 8.0, 1000, 20, 60


def inject(fault: Fault) -> None:
    """Publish to the delay queue eight times as fast as the consumer acks."""
    fault.make_queue(QUEUE, {"x-max-length": _LIMIT, "x-overflow": "reject-publish"})
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE}
    fault.make_queue(DELAY, {"x-message-ttl": _TTL_MS, **back})
    channel, taker = writer(fault, DELAY), reader(fault, QUEUE, every=1.0, prefetch=1)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, DELAY)
        taker.work()
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="delay-target-full",
    rule="delay-target-full",
    summary="messages expire from a delay queue into a full queue, which drops them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("pub-nacked-overflow", "slow-consumer", "prefetch-too-small"),
)
