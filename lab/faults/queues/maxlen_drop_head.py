"""maxlen-drop-head: a queue limited to 10 messages drops its oldest ones; the publisher gets acks for all.

Source: https://www.rabbitmq.com/docs/maxlength
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.maxlen-drop-head"
MAX_LENGTH = 10
_RATE, _TAKE_EVERY, _PROOF = 8.0, 2.0, 40


def inject(fault: Fault) -> None:
    """Publish with confirms, far faster than the consumer acks; no message is nacked."""
    fault.make_queue(QUEUE, {"x-max-length": MAX_LENGTH})
    channel, taker = writer(fault, QUEUE), reader(fault, QUEUE, every=_TAKE_EVERY, prefetch=1)
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        taker.work()
        # The queue and the consumer cannot hold more, so the rest was dropped.
        if not announced and sent > taker.acked + 1 + MAX_LENGTH + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="maxlen-drop-head",
    rule="maxlen-drop-head",
    summary="a queue with a limit of 10 messages drops its oldest ones; publishes are confirmed nevertheless",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
