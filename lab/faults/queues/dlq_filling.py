"""dlq-filling: a consumer rejects half of its messages, and the dead-letter queue has no consumer.

Source: https://www.rabbitmq.com/docs/dlx
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import rejecter, writer

QUEUE = "fault.dlq-filling"
"""The dead-letter queue; its name deliberately does not say so."""
WORK = "fault.dlq-filling.work"
_RATE, _PROOF = 8.0, 10


def inject(fault: Fault) -> None:
    """Consume, ack every other message and reject the rest."""
    fault.make_queue(QUEUE)
    fault.make_queue(WORK, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE})
    channel = writer(fault, WORK)
    consumer = rejecter(fault, WORK, "fault-dlq-filling-consumer")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, WORK)
        if not announced and consumer.rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dlq-filling",
    rule="dlq-filling",
    summary="a consumer rejects every other message, so the dead-letter queue grows by 4 messages/s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
