"""A form of ttl-expiry-loss: a consumer holds messages for longer than their TTL, and they expire when it ends.

Source: https://www.rabbitmq.com/docs/ttl#per-queue-message-ttl; seen on 3.10 and 4.3
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE, CLIENT = "fault.expired-returns", "fault-expired-returns"
_TTL, _PREFETCH = 6_000, 150
_TICK, _EVERY, _LIVES = 0.1, 3, 150
"""Seconds between two messages, messages per acknowledgement, and ticks until the consumer ends."""


def inject(fault: Fault) -> None:
    """Publish three times as much as the consumer works off, and replace it every 15 s."""
    fault.make_queue(QUEUE, {"x-message-ttl": _TTL})
    source, connection, held = publisher(fault, f"{CLIENT}-publisher"), None, list[int]()
    channel: BlockingChannel | None = None

    def keep(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    for tick, _ in enumerate(fault.ticks(_TICK)):
        publish(source, QUEUE)
        if connection is None or channel is None:
            connection, held = connect(fault.address, CLIENT), []
            channel = _consume(connection, keep)
        connection.process_data_events(time_limit=0)
        if held and tick % _EVERY == 0:
            channel.basic_ack(held.pop(0))
        if tick % _LIVES == _LIVES - 1:
            connection.close()
            connection = None
            if tick == _LIVES - 1:
                fault.announce()


def _consume(connection: BlockingConnection, keep: Any) -> BlockingChannel:
    channel = connection.channel()
    channel.basic_qos(prefetch_count=_PREFETCH)
    channel.basic_consume(QUEUE, keep, consumer_tag=CLIENT)
    return channel


SPEC = FaultSpec(
    name="expired-returns",
    rule="ttl-expiry-loss",
    summary="a consumer holds messages for longer than their TTL and ends: they expire when they are returned",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    client=CLIENT,
    also=("consumer-flapping",),
    one_shot=False,
)
