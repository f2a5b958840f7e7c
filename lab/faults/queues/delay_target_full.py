"""delay-target-full: eight messages a second expire into a full queue, or a consumer rejects four into another one.

Source: https://www.rabbitmq.com/docs/maxlength#overflow-behaviour
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, reject_half, writer

QUEUE = "fault.delay-target-full"
DELAY = "fault.delay-target-full.wait"
REFUSED = "fault.dead-letters-refused"
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


def _reject(fault: Fault) -> None:
    """Let a consumer reject every other message, when the queue for its dead letters is full and refuses them."""
    limit: dict[str, object] = {"x-max-length": _LIMIT, "x-overflow": "reject-publish"}
    reject_half(fault, f"{REFUSED}.work", REFUSED, limit, rate=_RATE, proof=_PROOF)


SPEC = FaultSpec(
    name="delay-target-full",
    rule="delay-target-full",
    summary="messages expire from a delay queue into a full queue, which drops them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("pub-nacked-overflow", "slow-consumer", "prefetch-too-small"),
)

REJECTED = FaultSpec(
    name="dead-letters-refused",
    rule="delay-target-full",
    summary="a consumer rejects every other message, and the queue for its dead letters is full and refuses them",
    subject=Subject(kind="queue", name=REFUSED),
    inject=_reject,
    also=("pub-nacked-overflow",),
)
