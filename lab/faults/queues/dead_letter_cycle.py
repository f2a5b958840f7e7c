"""dead-letter-cycle: what a consumer rejects returns through a delay queue after 1 s, endlessly; all or some of it.

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
SOME, SOME_DELAY = "fault.retries-without-end", "fault.retries-without-end.delay"
_RATE, _OF, _SOME_PROOF = 10.0, 5, 400
"""Messages a second, one of how many always fails, and rejects until the fault is in effect."""


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


def retry_some(fault: Fault) -> None:
    """Publish ten messages a second; acknowledge all but every fifth, and reject that one each time it returns."""
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": SOME}
    fault.make_queue(SOME_DELAY, {"x-message-ttl": DELAY_MS, **back})
    fault.make_queue(SOME, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": SOME_DELAY})
    channel = writer(fault, SOME)
    consumer = fault.connect("fault-retries-without-end").channel()
    delivered = rejected = 0

    def take(inner: BlockingChannel, method: Any, properties: Any, _body: bytes) -> None:
        nonlocal delivered, rejected
        again = "x-death" in (properties.headers or {})
        delivered += not again
        if again or delivered % _OF == 0:
            rejected += 1
            inner.basic_reject(method.delivery_tag, requeue=False)
        else:
            inner.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(SOME, take)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, SOME)
        if not announced and rejected >= _SOME_PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="dead-letter-cycle",
    rule="dead-letter-cycle",
    summary="3 messages that a consumer rejects return from a delay queue every second, endlessly",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)

WITHOUT_END = FaultSpec(
    name="retries-without-end",
    rule="dead-letter-cycle",
    summary="one of five messages fails each time and returns after 1 s; the others are acknowledged",
    subject=Subject(kind="queue", name=SOME),
    inject=retry_some,
    one_shot=False,
)
