"""zombie-connection: the broker closes a consumer's channel (406), and the application does not notice.

Its connection stays open and answers heartbeats. Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from contextlib import suppress
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPChannelError

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.zombie-connection"
_TICK = 0.5
_WORKS = 20
_NO_SUCH_TAG = 999


def inject(fault: Fault) -> None:
    """Consume for ten seconds, so that the rule sees it; then ack an unknown delivery tag and keep the connection."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-zombie-connection-publisher")
    consumer = fault.connect("fault-zombie-connection").channel()

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        # The broker may close the channel while the last deliveries are processed.
        with suppress(AMQPChannelError):
            inner.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, take, consumer_tag="fault-zombie-connection")
    announced = False
    for ticks, _ in enumerate(fault.ticks(_TICK), 1):
        publish(channel, QUEUE)
        if ticks == _WORKS:
            with suppress(AMQPChannelError):
                consumer.basic_ack(_NO_SUCH_TAG)
        if ticks > _WORKS and not announced and not consumer.is_open:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="zombie-connection",
    rule="zombie-connection",
    summary="a consumer's channel is closed for an unknown delivery tag; its connection stays open without one",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    also=("no-consumer",),
    one_shot=False,
)
