"""pub-tx-channel: a client acks and publishes in a transaction, and never commits.

Source: https://www.rabbitmq.com/docs/semantics#tx
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-tx-channel"
_RECEIVED = 5


def inject(fault: Fault) -> None:
    """Ack five messages and publish seven in one transaction; leave it open."""
    fault.make_queue(QUEUE)
    client = fault.connect("fault-pub-tx-channel").channel()
    client.tx_select()
    received: list[int] = []

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        received.append(method.delivery_tag)
        channel.basic_ack(method.delivery_tag)

    client.basic_qos(prefetch_count=2 * _RECEIVED)
    client.basic_consume(QUEUE, take, consumer_tag="fault-pub-tx-channel")
    with fault.briefly("fault-pub-tx-channel.feed") as channel:
        channel.confirm_delivery()
        for _ in range(_RECEIVED):
            channel.basic_publish("", QUEUE, b"tx", BasicProperties(delivery_mode=PERSISTENT))
    for _ in range(7):
        client.basic_publish("", QUEUE, b"tx", BasicProperties(delivery_mode=PERSISTENT))
    announced = False
    for _ in fault.ticks(0.2):
        if not announced and len(received) == _RECEIVED:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="pub-tx-channel",
    rule="pub-tx-channel",
    summary="a client acks 5 messages and publishes 7 in a transaction that stays open",
    subject=Subject(kind="connection", name=""),
    inject=inject,
)
