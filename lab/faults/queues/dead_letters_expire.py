"""dead-letters-expire: a consumer rejects half of its messages, and dead letters expire after 10 s.

Source: https://www.rabbitmq.com/docs/dlx
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reject_half

QUEUE = "fault.failed-for-10-s"
WORK = "fault.failed-for-10-s.work"
_RATE, _TTL, _PROOF = 8.0, 10_000, 60


def inject(fault: Fault) -> None:
    """Consume, ack every other message and reject the rest."""
    reject_half(fault, WORK, QUEUE, {"x-message-ttl": _TTL}, rate=_RATE, proof=_PROOF)


SPEC = FaultSpec(
    name="dead-letters-expire",
    rule="dead-letters-expire",
    summary="a consumer rejects every other message, and the dead letters expire after 10 s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("dlq-filling",),
    one_shot=False,
)
