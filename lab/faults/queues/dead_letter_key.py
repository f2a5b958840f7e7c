"""dlx-missing by the key: messages of a delay queue keep a key that the exchange of the work queue does not route."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.dead-letter-key"
DELAY = "fault.dead-letter-key.later"
EXCHANGE = "fault.dead-letter-key.back"
_RATE, _TTL_MS, _PROOF = 8.0, 3000, 60


def inject(fault: Fault) -> None:
    """Reject every other message into a delay queue; what expires there has its name as the key."""
    with fault.briefly("fault-dead-letter-key.setup") as setup:
        setup.exchange_declare(EXCHANGE, "direct", auto_delete=True)
    fault.make_queue(QUEUE, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DELAY})
    fault.make_queue(DELAY, {"x-message-ttl": _TTL_MS, "x-dead-letter-exchange": EXCHANGE})
    with fault.briefly("fault-dead-letter-key.bind") as setup:
        setup.queue_bind(QUEUE, EXCHANGE, QUEUE)
    channel = writer(fault, QUEUE)
    consumer = fault.connect("fault-dead-letter-key").channel()
    consumer.basic_qos(prefetch_count=10)

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        if method.delivery_tag % 2:
            inner.basic_ack(method.delivery_tag)
        else:
            inner.basic_reject(method.delivery_tag, requeue=False)

    consumer.basic_consume(QUEUE, take)
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="dead-letter-key",
    rule="dlx-missing",
    summary="messages of a delay queue keep their key, and the exchange that should take them back routes another one",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
    one_shot=False,
)
