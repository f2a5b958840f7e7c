"""Helper of decoys: a consumer."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection


def consume(connection: BlockingConnection, queue: str, prefetch: int = 20) -> BlockingChannel:
    """Consume from a queue and ack immediately."""

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)

    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume(queue, take)
    return channel
