"""dead-letters-expire: a consumer rejects half of its messages, and dead letters expire after 10 s.

Source: https://www.rabbitmq.com/docs/dlx
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import rejecter, writer

QUEUE = "fault.failed-for-10-s"
WORK = "fault.failed-for-10-s.work"
_RATE, _TTL, _PROOF = 8.0, 10_000, 60


def inject(fault: Fault) -> None:
    """Consume, ack every other message and reject the rest."""
    fault.make_queue(QUEUE, {"x-message-ttl": _TTL})
    fault.make_queue(WORK, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE})
    channel = writer(fault, WORK)
    consumer = rejecter(fault, WORK, "fault-failed-for-10-s-consumer")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, WORK)
        if not announced and consumer.rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dead-letters-expire",
    rule="dead-letters-expire",
    summary="a consumer rejects every other message, and the dead letters expire after 10 s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("dlq-filling",),
    one_shot=False,
)
