"""prefetch-too-small: a fast consumer with prefetch 1, which waits for the round trip after every message.

It acks immediately. A message is unacked for 1 to 2 ms: the round trip, and the client's time between two messages.
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.prefetch-too-small"
_TICK = 0.05
_MORE = 1.25
_START = 20
_PROOF = 500


def inject(fault: Fault) -> None:
    """Publish 25 % more than the consumer processes with prefetch 1."""
    fault.make_queue(QUEUE)
    # Without confirms: waiting for each would take the time that the consumer needs.
    channel = fault.connect("fault-prefetch-too-small-publisher").channel()
    consumer = fault.connect("fault-prefetch-too-small").channel()
    acked = 0

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal acked
        inner.basic_ack(method.delivery_tag)
        acked += 1

    consumer.basic_qos(prefetch_count=1)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-prefetch-too-small")
    before, announced = 0, False
    for _ in fault.ticks(_TICK):
        publish(channel, QUEUE, round(_MORE * (acked - before)) + (_START if not announced else 1))
        before = acked
        if not announced and acked >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="prefetch-too-small",
    rule="prefetch-too-small",
    summary="a fast consumer has prefetch 1, and the publish rate is 25 % above what can be delivered one by one",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("pub-no-confirms",),
)
