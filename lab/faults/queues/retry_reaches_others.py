"""retry-reaches-others: a delay queue leads back to the exchange of the publishers, which routes to a second queue too.

Source: https://www.rabbitmq.com/docs/dlx#routing
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

EXCHANGE = "fault.retry-reaches-others"
WORK = f"{EXCHANGE}.work"
OTHER = f"{EXCHANGE}.other"
DELAY = f"{EXCHANGE}.delay"
REJECTED = f"{EXCHANGE}.rejected"
_KEY, _RATE, _TTL_MS, _PROOF = "fault.made", 6.0, 1500, 40


def inject(fault: Fault) -> None:
    """Reject every other delivery of one queue; a second queue gets each retry as well, and acks it."""
    fault.make_queue(WORK, {"x-dead-letter-exchange": REJECTED})
    fault.make_queue(OTHER)
    fault.make_queue(DELAY, {"x-message-ttl": _TTL_MS, "x-dead-letter-exchange": EXCHANGE})
    with fault.briefly(f"{EXCHANGE}.bind") as setup:
        setup.exchange_declare(EXCHANGE, "topic", auto_delete=True)
        setup.exchange_declare(REJECTED, "topic", auto_delete=True)
        setup.queue_bind(WORK, EXCHANGE, "fault.*")
        setup.queue_bind(OTHER, EXCHANGE, "fault.*")
        setup.queue_bind(DELAY, REJECTED, "#")
    channel = writer(fault, WORK)
    consumer = fault.connect("fault-retry-reaches-others").channel()
    consumer.basic_qos(prefetch_count=10)
    rejected = 0

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal rejected
        if method.delivery_tag % 2:
            inner.basic_ack(method.delivery_tag)
        else:
            rejected += 1
            inner.basic_reject(method.delivery_tag, requeue=False)

    consumer.basic_consume(WORK, take)
    reader = fault.connect("fault-retry-reaches-others-second").channel()
    reader.basic_qos(prefetch_count=10)
    reader.basic_consume(OTHER, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, _KEY, exchange=EXCHANGE)
        if rejected >= _PROOF and not announced:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="retry-reaches-others",
    rule="retry-reaches-others",
    summary="what a consumer rejects returns through a delay queue to the exchange, and so to a second queue as well",
    subject=Subject(kind="queue", name=DELAY),
    inject=inject,
)
