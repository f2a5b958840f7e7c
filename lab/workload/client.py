"""The publishers and consumers of the shop, and the loop that keeps each connected."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address
from ackscope.errors import BrokerError
from ackscope.log import get_logger
from lab.amqp import LOST, PERSISTENT, connect

_AGAIN = 1.0
_BEHIND = 1.0
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishJob:
    """Publishes persistent messages at a constant rate, each with a confirm.

    Attributes:
        declare: declares its queues and exchanges; idempotent.
        rate: messages per second.
        body: message number -> content.
    """

    name: str
    declare: Callable[[BlockingChannel], None]
    exchange: str
    routing_key: str
    rate: float
    body: Callable[[int], dict[str, Any]]

    def work(self, connection: BlockingConnection, ending: threading.Event) -> None:
        """Publish until `ending` is set or the connection ends."""
        channel = connection.channel()
        self.declare(channel)
        channel.confirm_delivery()
        due, number = time.monotonic(), 0
        while not ending.is_set():
            number += 1
            channel.basic_publish(
                self.exchange,
                self.routing_key,
                json.dumps(self.body(number)).encode(),
                pika.BasicProperties(
                    content_type="application/json",
                    delivery_mode=PERSISTENT,
                    timestamp=int(time.time()),
                    app_id=self.name,
                ),
                mandatory=True,
            )
            due += 1 / self.rate
            if time.monotonic() - due > _BEHIND:
                # After a pause of the broker, do not publish the missed messages in a burst.
                due = time.monotonic()
            connection.sleep(max(0.0, due - time.monotonic()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeJob:
    """Consumes one message after the other.

    Attributes:
        declare: declares its queues and exchanges; idempotent.
        handle: processes a message; True acks it, False rejects it without requeue.
    """

    name: str
    declare: Callable[[BlockingChannel], None]
    queue: str
    prefetch: int
    handle: Callable[[bytes], bool]

    def work(self, connection: BlockingConnection, ending: threading.Event) -> None:
        """Consume until `ending` is set or the connection ends."""
        channel = connection.channel()
        self.declare(channel)
        channel.basic_qos(prefetch_count=self.prefetch)

        def take(channel: BlockingChannel, method: Any, _properties: Any, body: bytes) -> None:
            if ending.is_set():
                return
            if self.handle(body):
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_reject(method.delivery_tag, requeue=False)

        channel.basic_consume(self.queue, take, consumer_tag=self.name)
        while not ending.is_set():
            connection.process_data_events(time_limit=0.5)


Job = PublishJob | ConsumeJob


def keep(job: Job, address: Address, ending: threading.Event) -> None:
    """Run a job on its own connection, and reconnect until `ending` is set."""
    reported = False
    while not ending.is_set():
        try:
            connection = connect(address, job.name)
        except BrokerError as error:
            # Warn once and not at every attempt: ten jobs that retry each second would fill the log.
            log = _log.debug if reported else _log.warning
            log("cannot connect, retrying", job=job.name, error=str(error))
            reported = True
            ending.wait(_AGAIN)
            continue
        reported = False
        try:
            job.work(connection, ending)
        except LOST as error:
            if not ending.is_set():
                _log.warning("connection lost, reconnecting", job=job.name, error=type(error).__name__)
                reported = True
                ending.wait(_AGAIN)
        finally:
            _drop(connection)


def _drop(connection: BlockingConnection) -> None:
    try:
        if connection.is_open:
            connection.close()
    except LOST:
        _log.debug("connection was lost while closing it")
