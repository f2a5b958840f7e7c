"""dead-letters-held: a quorum queue keeps dead letters that have no route, fills up, and refuses its publisher.

Source: https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

from pika.exceptions import NackError

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import rejecter, writer

QUEUE = "fault.dead-letters-held"
_LIMIT, _RATE, _PROOF = 20, 10.0, 5


def inject(fault: Fault) -> None:
    """Publish and consume; the dead letters of half of the messages go to a queue that does not exist."""
    fault.make_queue(
        QUEUE,
        {
            "x-queue-type": "quorum",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"{QUEUE}.gone",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-max-length": _LIMIT,
        },
    )
    channel = writer(fault, QUEUE)
    rejecter(fault, QUEUE, "fault-dead-letters-held-consumer")
    nacks, announced = 0, False
    for _ in fault.ticks(1 / _RATE):
        try:
            publish(channel, QUEUE)
        except NackError:
            nacks += 1
        if not announced and nacks >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dead-letters-held",
    rule="dead-letters-held",
    summary="a quorum queue keeps dead letters without a route, and refuses its publisher at its limit of 20 messages",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("pub-nacked-overflow", "dlx-missing"),
)
