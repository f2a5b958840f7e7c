"""unexplained-loss: publishers give each message an expiration of 0.5 s, which no setting of the queue shows.

Source: https://www.rabbitmq.com/docs/ttl#per-message-ttl-in-publishers
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.unexplained-loss"
_RATE, _READ_EVERY, _PROOF = 8.0, 0.5, 24


def inject(fault: Fault) -> None:
    """Publish four times as fast as the consumer acks."""
    fault.make_queue(QUEUE)
    channel, consumer = writer(fault, QUEUE), reader(fault, QUEUE, every=_READ_EVERY, prefetch=1)
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE, expiration="500")
        consumer.work()
        if not announced and sent > consumer.acked + 1 + _RATE + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="unexplained-loss",
    rule="unexplained-loss",
    summary="messages expire by an expiration of their own, most of them before they are delivered",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
