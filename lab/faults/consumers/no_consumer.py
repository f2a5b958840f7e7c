"""no-consumer: messages are published to a queue whose only consumer has disconnected."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher, ready
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.no-consumer"
_RATE = 5.0
_PROOF = 5


def inject(fault: Fault) -> None:
    """Consume for a moment and disconnect; continue to publish."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-no-consumer-publisher")
    with fault.briefly("fault-no-consumer") as consumer:

        def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
            inner.basic_ack(method.delivery_tag)

        consumer.basic_qos(prefetch_count=10)
        consumer.basic_consume(QUEUE, take)
        publish(channel, QUEUE, _PROOF)
        consumer.connection.process_data_events(time_limit=0.2)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and ready(channel, QUEUE) >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="no-consumer",
    rule="no-consumer",
    summary="the only consumer of a queue disconnects; publishing continues at 5 messages/s",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
