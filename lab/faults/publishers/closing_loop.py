"""A publisher in a loop: it opens a channel and publishes, and the broker closes the channel."""

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import ChannelClosedByBroker

from lab.amqp import PERSISTENT
from lab.faults.fault import Fault


def publish_in_vain(
    fault: Fault, connection: BlockingConnection, exchange: str, body: bytes, rate: float, *, user_id: str | None = None
) -> None:
    """Publish on a new channel each time, like an application that only logs the error.

    The fault is announced once the broker has closed the first channel.
    """
    announced = False
    for _ in fault.ticks(1 / rate):
        channel = connection.channel()
        try:
            channel.confirm_delivery()
            channel.basic_publish(exchange, "key", body, BasicProperties(delivery_mode=PERSISTENT, user_id=user_id))
        except ChannelClosedByBroker:
            if not announced:
                fault.announce()
                announced = True
        if channel.is_open:
            channel.close()
