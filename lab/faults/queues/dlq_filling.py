"""dlq-filling: a consumer rejects half of its messages, and the dead-letter queue has no consumer.

Source: https://www.rabbitmq.com/docs/dlx
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reject_half

QUEUE = "fault.dlq-filling"
"""The dead-letter queue; its name deliberately does not say so."""
WORK = "fault.dlq-filling.work"
_RATE, _PROOF = 8.0, 10


def inject(fault: Fault) -> None:
    """Consume, ack every other message and reject the rest."""
    reject_half(fault, WORK, QUEUE, {}, rate=_RATE, proof=_PROOF)


SPEC = FaultSpec(
    name="dlq-filling",
    rule="dlq-filling",
    summary="a consumer rejects every other message, so the dead-letter queue grows by 4 messages/s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
