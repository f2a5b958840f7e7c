"""dead-letter-cycle: a consumer rejects three messages, which return through a delay queue after 1 s, endlessly.

Source: https://www.rabbitmq.com/docs/dlx#effects
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.dead-letter-cycle"
DELAY = "fault.dead-letter-cycle.delay"
MESSAGES = 3
DELAY_MS = 1000
_PROOF = 12


def inject(fault: Fault) -> None:
    """Publish three messages and reject each delivery."""
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": QUEUE}
    fault.make_queue(DELAY, {"x-message-ttl": DELAY_MS, **back})
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DELAY})
    channel = writer(fault, QUEUE)
    for _ in range(MESSAGES):
        publish(channel, QUEUE)
    consumer = fault.connect("fault-dead-letter-cycle-consumer").channel()
    rejected, announced = 0, False

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal rejected
        rejected += 1
        channel.basic_reject(method.delivery_tag, requeue=False)

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, take, consumer_tag=f"{QUEUE}.consumer")
    for _ in fault.ticks(0.2):
        if not announced and rejected >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dead-letter-cycle",
    rule="dead-letter-cycle",
    summary="3 messages that a consumer rejects return from a delay queue every second, endlessly",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
