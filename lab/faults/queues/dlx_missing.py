"""dlx-missing: the dead-letter exchange of a queue does not exist, and its consumer rejects half of the messages.

Source: https://www.rabbitmq.com/docs/dlx#routing
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import rejecter, writer

QUEUE = "fault.dlx-missing"
EXCHANGE = "fault.dlx-missing.gone"
_RATE, _PROOF = 8.0, 5


def inject(fault: Fault) -> None:
    """Publish and consume; the broker drops the rejected messages."""
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": EXCHANGE})
    channel = writer(fault, QUEUE)
    consumer = rejecter(fault, QUEUE, "fault-dlx-missing-consumer")
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and consumer.rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dlx-missing",
    rule="dlx-missing",
    summary="the dead-letter exchange of a queue does not exist: messages that its consumer rejects are lost",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
)
